"""The triage comment: the verdict first, the evidence folded, a way to correct it.

Invariant: nothing in it mentions, links, closes or refers: words of the issue are escaped, and the
model's words were checked before. It never claims its own read-back: the proof comes after it.
"""

import re
from dataclasses import dataclass

from triage.plan import Decision
from triage.wording import CONTROL

_ZERO_WIDTH = "\u200b"
_MARKDOWN = re.compile(r"([\\`*_\[\]|~!])")
_LIVE = re.compile(r"(?i)(@|#|\bgh-|://|\bwww|\bmailto:)")


@dataclass(frozen=True, slots=True)
class Phrases:
    """The fixed words of a comment in one language."""

    triage: str
    evidence: str
    considered: str
    where: str
    wrong: str


PHRASES: dict[str, Phrases] = {
    "en": Phrases(
        "Triage",
        "Evidence for these labels",
        "Considered, not applied",
        "Where to look",
        "Wrong? Change the labels: they will not be put back. `/retriage` runs it again. "
        "Automated, edited in place.",
    ),
    "zh-tw": Phrases(
        "分類",
        "這些標籤的依據",
        "考慮過但未套用",
        "可查看的位置",
        "不對嗎？直接改標籤即可，不會再被加回。`/retriage` 可重新執行。自動產生，原地編輯。",
    ),
    "zh": Phrases(
        "分类",
        "这些标签的依据",
        "考虑过但未采用",
        "可查看的位置",
        "不对吗？直接改标签即可，不会再被加回。`/retriage` 可重新运行。自动生成，原地编辑。",
    ),
    "ja": Phrases(
        "トリアージ",
        "ラベルの根拠",
        "検討したが付けなかったもの",
        "見るべき場所",
        "違う場合はラベルを変更してください。元には戻しません。`/retriage` で再実行します。"
        "自動投稿で、この場で編集されます。",
    ),
    "de": Phrases(
        "Einordnung",
        "Belege für diese Labels",
        "Erwogen, nicht vergeben",
        "Wo zu suchen ist",
        "Falsch? Labels ändern genügt, sie werden nicht zurückgesetzt. `/retriage` wiederholt es. "
        "Automatisch, an Ort und Stelle bearbeitet.",
    ),
    "fr": Phrases(
        "Tri",
        "Indices pour ces étiquettes",
        "Envisagé, non appliqué",
        "Où regarder",
        "Une erreur ? Changez les étiquettes : elles ne seront pas remises. `/retriage` relance "
        "le tri. Automatique, modifié sur place.",
    ),
    "es": Phrases(
        "Clasificación",
        "Indicios para estas etiquetas",
        "Considerado, no aplicado",
        "Dónde mirar",
        "¿No es correcto? Cambia las etiquetas: no se volverán a poner. `/retriage` lo repite. "
        "Automático, editado en el mismo lugar.",
    ),
    "ar": Phrases(
        "التصنيف",
        "أدلة هذه الوسوم",
        "نُظر فيه ولم يُطبَّق",
        "أين تنظر",
        "غير صحيح؟ غيّر الوسوم ولن تُعاد. `/retriage` يعيد التشغيل. آلي، ويُعدَّل في مكانه.",
    ),
}
PHRASES |= dict.fromkeys(("zh-hant", "zh-hk", "zh-mo"), PHRASES["zh-tw"])


def phrases(language: str) -> Phrases:
    """The words for a language tag; its base language, then English, where it has none."""
    tag = language.lower()
    while tag not in PHRASES and "-" in tag:
        tag = tag.rpartition("-")[0]
    return PHRASES.get(tag, PHRASES["en"])


def render(decision: Decision) -> str:
    """The comment's body, without its marker."""
    words = phrases(decision.language)
    labels = ", ".join(f"`{name}`" for name in decision.labels)
    lines = [f"**{words.triage}: {labels}.** {escaped(decision.verdict)}", ""]
    where = _places(decision)
    if decision.evidence or decision.considered or where:
        lines += ["<details>", f"<summary>{words.evidence}</summary>", ""]
        lines += [f'- `{item.label}`: "{escaped(item.quote)}"' for item in decision.evidence]
        if decision.considered:
            others = "; ".join(
                f"`{item.label}` ({escaped(item.reason)})" for item in decision.considered
            )
            lines.append(f"- {words.considered}: {others}")
        if where:
            lines.append(f"- {words.where}: {where}")
        lines += ["", "</details>", ""]
    return "\n".join([*lines, words.wrong])


def _places(decision: Decision) -> str:
    """The component and the files, as far as there are any."""
    files = ", ".join(escaped(name) for name in decision.files)
    return ": ".join(part for part in (escaped(decision.component), files) if part)


def escaped(text: str) -> str:
    """Words of others, on one line, that neither mention, link, refer nor format.

    GitHub looks for mentions and references in the rendered text, so entities do not hide them; a
    zero-width space behind the sign does.
    """
    plain = " ".join(CONTROL.sub(" ", text).split())
    plain = plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    plain = _MARKDOWN.sub(r"\\\1", plain)
    return _LIVE.sub(lambda match: match[0] + _ZERO_WIDTH, plain)
