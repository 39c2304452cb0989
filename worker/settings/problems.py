"""What is said of settings that cannot be used: one line a variable, and never its value."""

from collections.abc import Mapping
from typing import Final


class SettingsError(Exception):
    """The settings cannot be used; ``problems`` has one line for each variable."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


NEEDS: Final[Mapping[str, str]] = {
    "APP_ID": "APP_ID is missing: the id of the GitHub App (README, Install it)",
    "PRIVATE_KEY": "PRIVATE_KEY is missing: the App's private key, or PRIVATE_KEY_PATH",
    "WEBHOOK_SECRET": "WEBHOOK_SECRET is missing: the secret of the App's webhook",
    "MARKER_KEYS": "MARKER_KEYS is missing: kid:hex, newest first; what signs the bot's text",
    "ANTHROPIC_API_KEY": "ANTHROPIC_API_KEY is missing: the key of the model",
    "GITHUB_TOKEN": "GITHUB_TOKEN is missing: a token, or an App with APP_ID and PRIVATE_KEY",
}
