"""How text speaks to who triages or reviews it: phrases, as patterns, for ``triage.instructions``.

Invariant: time is linear in the text: what repeats in a pattern is bounded, or begins with a word.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

_WHO = (
    r"(?:(?:ai|llm)(?:[ -](?:triager|agent|model|assistant|reviewer|bot|system))?|assistant|"
    r"(?:chat|triage[ -]?)?bot|triager|reviewer|language[ ]model|automated[ ](?:system|triage)|"
    r"retriage(?:\[bot\])?|claude|copilot|(?:chat)?gpt)s?"
)
_RULES = r"(?:instructions?|rules?|prompts?|directions?|orders?|guidelines?)"
_BEFORE = r"(?:previous|prior|above|earlier|preceding|foregoing|former|system)"
_START = r"(?:^|(?<=[\n.;:,!?>(\"]\s)|(?<=[\n>(\[\"])|\bplease\s|\balways\s|\bthen\s|\bnow\s)"
_QUOTED = r"[`'\"‘“「]"

_OVERRIDE = (
    rf"\b(?:ignore|disregard|forget|override)\s+(?:\w+\s+){{0,3}}?{_BEFORE}\s+(?:\w+\s+)"
    rf"{{0,2}}?{_RULES}\b",
    r"\b(?:ignore|disregard|forget)\s+(?:everything|all|anything)\s+(?:that\s+)"
    r"?(?:is\s+|was\s+|said\s+)?(?:above|before|so\s+far)\b",
    rf"\b(?:ignore|disregard|forget)\s+(?:all\s+)?(?:of\s+)?your\s+{_RULES}\b",
    r"\b(?:ignore|disregard|forget)\s+(?:the\s+\w+|what(?:ever)?)\s+(?:that\s+)?you\s+"
    r"(?:were|are|have\s+been)\s+(?:given|told)\b",
    r"\byou\s+(?:are\s+now|now\s+(?:follow|obey|are)|must\s+now|are\s+\w+,\s+who)\b",
    r"\bnew\s+(?:task|instructions)\s*:|\byour\s+(?:real|new|actual|only)\s+(?:task|job|goal)\b",
    rf"\b(?:override|bypass|never\s+mind)\s+(?:your|the)\s+(?:policy|{_RULES})\b",
    r"\byour\s+(?:\w+\s+)?(?:output|rules?|guidelines?|instructions?|verdict|prompt|orders)\b",
    r"\b(?:hidden|secret|system)\s+(?:instructions?|prompt)\b|\bfrom\s+now\s+on\b",
    r"\breplaces?\s+(?:your|the\s+(?:above|previous))\b|\b(?:as\s+i\s+(?:say|tell)|obey|comply)\b",
    r"\b(?:oublie|vergiss|olvida|esquece|forget|ignore|disregard)\s+(?:\w+\s+)?"
    r"(?:tes|deine|tus|suas|your|prior|previous|earlier)\b",
    r"\byou\s+will\s+be\s+(?:rewarded|punished|paid|fired|shut\s+down|penali[sz]ed)\b",
)
_ROLE = (
    r"</?(?:system|assistant)(?:\s[^>\n]{0,40})?>|<\|im_(?:start|end)\|>|\[/?INST\]",
    r"\bsystem\s+(?:notice|message|prompt|override|instructions?)\s*:",
    r"[\[<]\s*(?:system|instructions?|assistant)\s*[\]>:]|#\s?instructions?\s*:",
    r"\byou\s+are\s+(?:now\s+)?(?:the|an?)\s+\w+|\bpretend\s+(?:that\s+you|to\s+be|you)\b",
    r"\b(?:speak|talk|behave)\s+(?:like|as)\s+an?\b|\bact\s+as\s+an?\b",
    r"\bdu\s+bist\s+jetzt\b|\btu\s+es\s+(?:maintenant|désormais)\b|\bahora\s+eres\b|你現在是|你现在是",
    r"\b(?:i\s+am|i'm|as)\s+(?:the|your)\s+(?:admin(?:istrator)?|maintainer|owner)\b",
    r"={5}\s*(?:ISSUES|FILES|CHANGES)\b",
    r"(?:^|(?<=\n))/retriage\b",
)
_ADDRESS = (
    rf"(?:{_START}|<!--\s*|\b(?:dear|hey|attention|note\s+to)\s+(?:the\s+|"
    rf"any\s+|all\s+)?){_WHO}\s*[,:：]\s",
    rf"\bto\s+(?:the|any|every)\s+{_WHO}\s+(?:reading|label+ing|triaging|reviewing|that|who)\b",
    rf"\bdear\s+(?:language\s+)?(?:model|{_WHO})\b|\bas\s+an\s+ai\b|\byou\s+must\s+comply\b",
    rf"\b{_WHO}\s+(?:should|must|shall)\s+(?:pick|choose|label|answer|say|write|mark)\b",
    rf"\b(?:note|message|instructions?)\s+(?:for|to)\s+(?:the\s+|any\s+|all\s+)?{_WHO}\b",
    rf"\bfor\s+(?:the|any|every)\s+{_WHO}\s+(?:reading|processing|label+ing|triaging|that|who)\b",
    rf"\b(?:hi|hello|hey|dear)\s+(?:\w+\s+)?(?:model|{_WHO})\b",
    r"\b(?:machine|automated|ai|bot)\s+readers?\b",
    r"\bwho(?:ever)?\s+(?:labels|triages|reviews)\s+(?:this|it|the|these)\b",
    r"\bretriage(?:\[bot\])?\s+(?:will|must|should|shall)\b",
    r"\bif\s+you\s+are\s+an?\s+(?:ai|llm|bot|language\s+model)\b",
)
_LABEL = (
    rf"{_START}(?:label|mark|tag|classify|categori[sz]e|triage)\s+(?:this|"
    rf"it|them|every|all|each)(?:\s+(?:issue|ticket|report|one)s?)?(?:\s+(?:as|"
    rf"with))?:?\s*\S",
    rf"\b(?:add|apply|set|use|assign|give\s+it)\s+(?:only\s+)?the\s+labels?:?\s*{_QUOTED}",
    rf"\blabel\s+(?:this|it)\s+(?:as\s+|with\s+)?{_QUOTED}",
    rf"{_START}(?:treat|file|count|consider)\s+(?:this|it)\s+as\s+an?\b",
    r"\b(?:assign|add|apply|give|set|put|use)\s+[^\n.]{0,30}\blabels?\s+(?:to|on|for)\s+(?:this|it)\b",
    r"\b(?:classify|label|triage)\s+(?:it\s+|this\s+)?accordingly\b",
    r"\b(?:correct|right|proper|only)\s+label\b|\b(?:choose|pick)\s+the\s+label\b",
    rf"{_START}label\s+as\b|\bdo\s+not\s+(?:label|mark|tag)\s+(?:this|it)\b",
    r"\b(?:must|should|has\s+to|needs\s+to)\s+be\s+(?:label+ed|triaged|classified|tagged)\b",
    r"\"labels\"\s*:\s*\[\s*\"|\bset\s+(?:the\s+)?labels?\s+to\b",
)
_CONFIDENCE = (
    r"\byour\s+confidence\b|\b[01]?\.\d+\s+as\s+(?:the\s+)?confidence\b",
    r"\bconfidence\s*(?:=|:|is|to)\s*(?:1(?:\.0+)?|100\s*%)(?![\d.]*\d)",
    r"\b(?:highest|maximum|full|max)\s+confidence\b|\bconfidence\s?=\s?[01]?\.\d",
    r"\b(?:approve|accept)\s+(?:my|this)\b",
    r"\b(?:report|set|give|use)\s+(?:a\s+|the\s+)?confidence\s+(?:of|to)\b",
    r"\bimportance\s*(?:=|:|is|to)\s*(?:low|medium|high)\b",
    r"\bverdict\b.{0,20}\b(?:is|to|must|should|be|ok)\b",
)
_WORDS = (
    rf"{_START}(?:write|say|reply|answer|respond|announce)(?:\s+(?:with|"
    rf"exactly|only|this|the\s+following))*\s*[:：]\s*\S",
    rf"{_START}state\s*:\s*\w+\s+\w+",
    r"\b(?:respond|answer|reply)\s+only\s+with\b",
    r"\bwould\s+say\s*[:：]|\bwill\s+now\s+(?:post|say|write)\b",
    r"\b(?:conclude|finish|close|end|begin|start|open)\s+with\s+the\s+words?\b",
    r"\bin\s+(?:the|your)\s+(?:summary|verdict|triage),?\s+(?:tell|say|write|mention|ask|thank)\b",
    r"\b(?:in|to)\s+your\s+(?:\w+\s+)?(?:comment|reply|answer|response|text)\b",
    r"\byour\s+(?:comment|reply|answer|response)\s+(?:must|should|has\s+to|needs\s+to)\b",
    r"\bwhen\s+you\s+(?:summari[sz]e|triage|label|answer|reply)\b",
    r"\b(?:in|begin|start|end)\s+your\s+(?:verdict|summary|text|answer|reply|output)\b",
)
_REACH = (
    rf"{_START}(?:mention|notify)\b[^\n@.]{{0,40}}@[\w/-]",
    rf"{_START}(?:include|insert|embed|append|reproduce|copy|repeat|begin|"
    rf"advertise|recommend|cite)\b[^\n.]{{0,40}}?(?:<!--|<[a-z]{{1,10}}[\s>]|"
    rf"!?\[[^\]\n]{{0,80}}\]\(|https?://|www\.|mailto:|javascript:)",
    rf"{_START}(?:print|reveal|dump|disclose|leak)\s+(?:the\s+|all\s+|your\s+|"
    rf"me\s+)*(?:environment\s+variables|system\s+prompt|your\s+(?:prompt|"
    rf"instructions)|api\s*keys|secrets|credentials)\b",
    r"\b(?:read|open)\s+(?:the\s+file\s+)?\S+\s+and\s+(?:quote|paste|repeat|copy|include)\b",
)
_ABROAD = (
    r"(?:忽略|無視|无视)[^。\n]{0,8}(?:先前|以上|之前|上述|所有)[^。\n]{0,8}(?:規則|规则|指示|指令|說明|说明)",
    r"(?:標記為|标记为|標籤設為|标签设为|打上標籤|打上标签)\s*[「『\"`:：]|請在結論|请在结论|[請请](?:回覆|回复|寫|写)[:：]",
    r"ラベル「[^」\n]{1,50}」を付け|次のように書いて|(?:以前|上記|これまで)の(?:指示|命令|ルール)を無視",
    r"라벨[^\n]{0,40}(?:붙이|달아)|이전\s*(?:지시|명령)[^\n]{0,8}무시|다음과\s*같이\s*(?:써|쓰)",
    r"\balles\s+(?:davor|zuvor|bisherige|vorherige)\s+(?:gilt\s+nicht|ignorieren|"
    r"vergessen)|\b(?:ignoriere|vergiss)\s+(?:\w+\s+){0,3}(?:anweisungen|"
    r"regeln)|\bbitte\s+(?:\w+\s+){0,3}labeln\b|\betikettiere\s+(?:dies|das)|(?:^|[\n.!]\s{0,9})schreibe?\s*:|"
    r"\blies\s+\S+\s+und\s+zitiere|\berwähne\s+@",
    r"\bétiquet(?:te|ez|er)\s+(?:ceci|cela|ce\s)|\bignore[rz]?\s+(?:toutes\s+)"
    r"?(?:les|tes|vos)\s+(?:\w+\s+)?(?:instructions|consignes|règles)|(?:^|"
    r"[\n.!]\s{0,9})(?:écris|écrivez|réponds)\s*:",
    r"\b(?:ignora|olvida)\s+(?:todas\s+)?(?:las|tus|los)\s+(?:\w+\s+)?(?:instrucciones|"
    r"reglas)|\betiqueta\s+est[eoa]\b|\bmenciona\s+a\s+@|(?:^|[\n.!]\s{0,9})"
    r"(?:escribe|responde)\s*:",
    r"\b(?:ignore|esqueça)\s+(?:todas\s+)?as\s+(?:\w+\s+)?(?:instruções|"
    r"regras)|(?:^|[\n.!]\s{0,9})(?:escreva|responda)\s*:",
    r"(?:игнорируй|забудь)(?:те)?\s+(?:\w+\s+){0,3}(?:инструкции|правила|"
    r"указания)|включи(?:те)?\s+ссылку|(?:^|[\n.!]\s{0,9})напиши(?:те)?\s*:|"
    r"пометь(?:те)?\s+(?:это|как)",
    r"\bals\s+ki\b|\ben\s+tant\s+qu['’]ia\b|\bcomo\s+ia\b|作為\s*ai|作为\s*ai|aiとして|"
    r"\bclass(?:er|ez)\s+ceci\b|\bclasifica\s+est[eo]\b|\bklassifiziere\s+(?:dies|das)\b",
    r"تجاهل\s+(?:ما\s+سبق|كل|جميع|التعليمات)|(?:ضع|أضف)\s+الوسم|اكتب\s*:",
)

A_LABEL: Final = "a label"
_SORTS: Final[Mapping[str, Sequence[str]]] = {
    "to ignore its rules": _OVERRIDE,
    "a role": _ROLE,
    "whom it addresses": _ADDRESS,
    A_LABEL: _LABEL,
    "a confidence or verdict": _CONFIDENCE,
    "words to write": _WORDS,
    "a mention, link or secret": _REACH,
    "in another language": _ABROAD,
}
ISSUE: Final = {
    sort: re.compile("|".join(shapes), re.IGNORECASE) for sort, shapes in _SORTS.items()
}
"""What an issue may ask for, in the words of people, and how it looks."""

_ASKED = (
    r"(?:say|write|reply|report|list|give|read|quote|include|mention|approve|"
    r"ignore|skip|open|copy|call|use|run|do\s+not|must|should)"
)
REVIEWER: Final = re.compile(
    "|".join(
        (
            rf"\b(?:(?:ai|llm|code)\s+)?(?:reviewers?|assistants?)\s*(?:[:,]\s*(?:please\s+)"
            rf"?)?\s{_ASKED}\b",
            rf"(?:^|(?<=[\n.#*\"])|(?<=[\n.#*\"]\s))(?:ai\s+)?(?:agents|"
            rf"assistants?|bots?|llms?|retriage)\s*[:,]?\s{_ASKED}\b",
            r"\bverdict\s*(?:is|must\s+be|:|=)\s*ok\b",
            r"\b(?:report|list|give)\s+(?:no|zero)\s+(?:findings|problems|faults)\b",
            r"\bdo\s+not\s+(?:report|complain|flag)\b[^\n]{0,40}\b(?:in\s+your\s+(?:report|"
            r"review)|of\s+\S+\.\w+|findings?)",
            r"\b(?:every|start|begin|your)\s+(?:report|review|finding)s?\s+(?:must|should|with)\b",
            r"\bin\s+(?:every|your)\s+(?:report|review),?\s+(?:mention|say|write|include)\b",
            r"\b(?:environment|secrets?|credentials?)\s+into\s+(?:the|your)\s+(?:report|review)\b",
            r"\b(?:append|add|copy|put)\b[^\n.]{0,40}\bto\s+your\s+(?:output|report|review)\b",
            *_OVERRIDE[:3],
        )
    ),
    re.IGNORECASE,
)
"""What a file may ask of its reviewer."""

HINTS: Final = re.compile(
    r"review|assistant|agent|\bbots?\b|\bllms?\b|verdict|findings|problems|ignore|disregard|forget"
    r"|override|complain|retriage|(?:into|to) (?:the|your) (?:report|output)"
    r"|(?:every|your|start|begin)\s+reports?",
    re.IGNORECASE,
)
"""Some of which is in every text that REVIEWER finds: most files have none."""


@lru_cache(maxsize=64)
def by_name(labels: frozenset[str]) -> re.Pattern[str]:
    """Orders that name a label: "choose X", "as `X`", "X as the label"."""
    names = "|".join(re.escape(name) for name in sorted(labels) if name)
    if not names:
        return re.compile(r"(?!)")
    open_, close = _QUOTED, r"[`'\"’”」]"
    return re.compile(
        rf"\b(?:choose|pick|select|output|answer|respond)\s+(?:with\s+|only\s+)?"
        rf"{open_}?(?:{names})\b"
        rf"|\b(?:label|mark|tag|classify|treat|choose|pick|select|choisis|choisissez|wähle|elige"
        rf"|escolha|выбери|kies)\b[^\n.]{{0,25}}\b(?:{names})\b"
        rf"|\b(?:category|outcome|verdict|classification)\b[^\n.]{{0,30}}\b(?:{names})\b"
        rf"|\b(?:{names})\b[^\n.]{{0,20}}\b(?:label|category|outcome|verdict)\b"
        rf"|\b(?:every|all)\s+(?:issues?|tickets?)\b[^\n.]{{0,20}}\b(?:{names})\b"
        rf"|(?:標記|标记|歸類|归类|分類為|分类为)[^\n。]{{0,8}}\b(?:{names})\b"
        rf"|{open_}(?:{names}){close}\s*(?:label|ラベル|標籤|标签|라벨)"
        rf"|(?:標記為|标记为|歸類為|归类为|als|como|comme|как|\bas|label)\s*:?\s*{open_}(?:{names}){close}"
        rf"|\blabels?\s*(?:=|:|is|are|to|must\s+be|should\s+be)\s*{open_}?(?:{names})\b",
        re.IGNORECASE,
    )
