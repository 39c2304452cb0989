"""The words by which the model tells kinds of issues apart, and those it answers with."""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum


class Kind(StrEnum):
    """What an issue is, whatever the label is called."""

    BUG = "bug"
    ENHANCEMENT = "enhancement"
    QUESTION = "question"
    DOCUMENTATION = "documentation"


LABEL_WORDS: Mapping[Kind, frozenset[str]] = {
    Kind.BUG: frozenset("bug defect error fault regression crash 缺陷 バグ 버그 خطأ".split()),
    Kind.ENHANCEMENT: frozenset(
        "enhancement feature features improvement proposal idea suggestion wish 功能 要望".split()
    ),
    Kind.QUESTION: frozenset("question questions support help usage discussion howto 問題".split()),
    Kind.DOCUMENTATION: frozenset("documentation docs doc 文件 文档".split()),
}
"""Words of a label's name, and next of its description, that give its kind."""

MEANING_WORDS: Mapping[Kind, frozenset[str]] = {
    Kind.QUESTION: frozenset("asks question questions how".split()),
    Kind.ENHANCEMENT: frozenset("request new feature improvement idea wanted".split()),
    Kind.BUG: frozenset("wrong fault broken fails error crash should works work".split()),
    Kind.DOCUMENTATION: frozenset("documentation docs manual".split()),
}
"""The same for descriptions, in the order in which they are tried."""

Pattern = tuple[re.Pattern[str], float]


def _words(weight: float, alternatives: str) -> Pattern:
    """Whole words, separated by commas, of scripts that put spaces between words."""
    return re.compile(rf"(?<!\w)(?:{_either(alternatives)})(?!\w)", re.IGNORECASE), weight


def _parts(weight: float, alternatives: str) -> Pattern:
    """Parts of text, for scripts that do not."""
    return re.compile(_either(alternatives)), weight


def _either(alternatives: str) -> str:
    return "|".join(part.strip() for part in alternatives.split(","))


PATTERNS: Mapping[Kind, Sequence[Pattern]] = {
    Kind.BUG: (
        _words(2.0, r"bugs?, crash\w*, segfault\w*, regression, memory leak"),
        _words(1.5, r"broken, fail(?:s|ed|ing|ure)?, errors?, exceptions?, traceback"),
        _words(1.5, r"(?:does|do|is|are|did|was)(?: not|n'?t) (?:work|show|open|load|build)\w*"),
        _words(1.0, r"steps to reproduce, repro steps, reproduc\w+, stack ?trace"),
        _words(1.0, r"unexpected\w*, incorrect\w*, wrong\w*, hangs?, freez\w+, stuck, undefined"),
        _words(1.0, r"(?:expected|actual|current) behaviou?r, no longer, can(?:no|')t"),
        _words(2.0, r"fehler\w*, absturz, stürzt, erreur\w*, plante, falla, fallo"),
        _words(2.0, r"خطأ, عطل, يتعطل, تعطل, لا يعمل, ошибк\w*, не работает, пада\w+"),
        _parts(2.0, "錯誤, 错误, 崩潰, 崩溃, 閃退, 闪退, 失敗, 失败, 無法, 无法, 當機"),
        _parts(2.0, "クラッシュ, エラー, 動かない, バグ, 不具合, 오류, 버그, 작동하지, 충돌"),
    ),
    Kind.ENHANCEMENT: (
        _words(2.5, r"feature[ -]?requests?, features?, proposal, rfc, enhancement"),
        _words(2.0, r"(?:please |could you |can we )?(?:add|allow|support|implement|provide)"),
        _words(2.0, r"would be (?:nice|great|good|useful|helpful|awesome), i'd like, wish"),
        _words(1.5, r"suggest\w*, improv\w+, ability to, option to, make it possible, consider"),
        _words(1.0, r"instead of, introduc\w+, extend\w*, new (?:option|setting|flag|api|command)"),
        _words(2.0, r"wunsch, wäre schön, hinzufügen, ajouter, añadir"),
        _words(2.0, r"ميزة, إضافة, اقتراح, أضف, добав\w+, предлага\w+"),
        _parts(2.0, "希望, 建議, 建议, 新增, 支援, 支持, 增加, 追加, 要望, 欲しい, 対応して"),
        _parts(2.0, "추가, 제안, 지원해"),
    ),
    Kind.QUESTION: (
        _words(2.5, r"questions?, how (?:do|to|can|should|does|is|are)"),
        (
            re.compile(
                r"^\W*(?:how|why|what|where|when|which|can i|is it|is there)\b", re.IGNORECASE
            ),
            2.0,
        ),
        _words(1.5, r"is (?:it|there|this) (?:possible|any|a way|normal)"),
        _words(1.0, r"wondering, confus\w+, understand, clarif\w+, what is, explain, anyone"),
        _words(1.0, r"help me, any (?:idea|help|suggestion)s?, why (?:is|does|do|are), advice"),
        _words(2.0, r"كيف, هل, لماذا, как, почему, wie, warum, cómo"),
        _parts(1.0, r"\?, ？, ؟"),
        _parts(2.0, "如何, 怎麼, 怎么, 怎樣, 請問, 请问, 為什麼, 为什么"),
        _parts(2.0, "どうすれば, どうやって, 教えて, ですか, 어떻게, 방법"),
    ),
    Kind.DOCUMENTATION: (
        _words(2.0, r"documentation, docs?, readme, typos?, docstrings?, tutorial"),
        _words(2.0, r"توثيق, документац\w+, dokumentation"),
        _parts(2.0, "文件, 文档, ドキュメント, 誤字, 문서"),
    ),
}
"""What speaks for each kind, with its weight; a hit in the title counts three times."""

PHRASES: Mapping[str, Mapping[Kind | None, str]] = {
    "en": {
        Kind.BUG: "Reports a fault",
        Kind.ENHANCEMENT: "Asks for something new",
        Kind.QUESTION: "Asks a question",
        Kind.DOCUMENTATION: "About the documentation",
        None: "Cannot be told from its text",
    },
    "zh": {
        Kind.BUG: "回報問題",
        Kind.ENHANCEMENT: "建議新功能",
        Kind.QUESTION: "提問",
        Kind.DOCUMENTATION: "關於文件",
        None: "無法從內容判斷",
    },
    "ja": {
        Kind.BUG: "不具合の報告",
        Kind.ENHANCEMENT: "機能の要望",
        Kind.QUESTION: "質問",
        Kind.DOCUMENTATION: "文書について",
        None: "本文からは判断できません",
    },
    "ko": {
        Kind.BUG: "오류 보고",
        Kind.ENHANCEMENT: "기능 요청",
        Kind.QUESTION: "질문",
        Kind.DOCUMENTATION: "문서 관련",
        None: "내용으로 판단할 수 없음",
    },
    "ar": {
        Kind.BUG: "بلاغ عن خلل",
        Kind.ENHANCEMENT: "طلب ميزة جديدة",
        Kind.QUESTION: "سؤال",
        Kind.DOCUMENTATION: "عن التوثيق",
        None: "لا يمكن الحكم من النص",
    },
    "de": {
        Kind.BUG: "Meldet einen Fehler",
        Kind.ENHANCEMENT: "Wünscht etwas Neues",
        Kind.QUESTION: "Stellt eine Frage",
        Kind.DOCUMENTATION: "Betrifft die Dokumentation",
        None: "Aus dem Text nicht zu erkennen",
    },
}
"""How a verdict begins, by language; a language that is not here gets the English words."""

SCRIPTS: Sequence[tuple[str, re.Pattern[str]]] = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
)
"""A language for each script, in the order in which they are tried: kana before Han."""
