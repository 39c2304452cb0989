// The same work as the receiver's, on Probot: the signature is checked, the delivery's id is set
// once, and one job stands in a BullMQ queue before the answer.
import { generateKeyPairSync } from "node:crypto";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { run } from "probot";

const KEPT_SECONDS = 30 * 24 * 60 * 60;

const { REDIS_SOCKET: path, REDIS_DATABASE: db, WEBHOOK_SECRET: secret } = process.env;
const redis = new Redis({ path, db: Number(db), maxRetriesPerRequest: 1 });
const queue = new Queue("retriage", { connection: redis });
const { privateKey } = generateKeyPairSync("rsa", {
  modulusLength: 2048,
  publicKeyEncoding: { type: "spki", format: "pem" },
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
});

function app(probot) {
  probot.on("issues.opened", async ({ id, payload }) => {
    const isNew = await redis.set(`delivery:${id}`, "1", "EX", KEPT_SECONDS, "NX");
    if (!isNew) return;
    await queue.add("handle", {
      guid: id,
      ask: {
        kind: "opened",
        repository_id: payload.repository.id,
        repository: payload.repository.full_name,
        installation: String(payload.installation.id),
        issue: payload.issue.number,
        issue_id: payload.issue.id,
        login: payload.sender.login,
        user_id: payload.sender.id,
      },
    });
  });
}

// Probot's own server, as `probot run` starts it.
await run(app, {
  env: {
    ...process.env,
    APP_ID: "1",
    PRIVATE_KEY: privateKey,
    HOST: "127.0.0.1",
    WEBHOOK_PATH: "/api/github/webhooks",
  },
});
