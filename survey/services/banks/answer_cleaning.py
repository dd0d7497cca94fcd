"""What of a reply counts as its answer, before anything is read off it: no reasoning, no question that the model went
on to invent, no marks of markdown and LaTeX. Uses only the standard library."""

import re
import unicodedata

# How models mark what they think before they answer: the tags of DeepSeek, Qwen, Claude, Cohere, Mistral, Seed, Kimi,
# OpenThinker and MedGemma, in the spelling of their chat templates.
REASONING_NAMES = (
    r"(?:[a-z]+:)?(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflect(?:ion)?|scratch_?pad|analysis|"
    r"inner_?(?:monologue|thoughts?)|deliberation|internal|cot|chain_?of_?thought)"
)
OPENS = (
    rf"<{REASONING_NAMES}(?:\s[^<>]*)?>|\[think\]|<\|(?:begin|start)_(?:of_)?think(?:ing)?\|>|"
    r"<\|(?:begin|start)_of_thought\|>|\u25c1think\u25b7|<unused94>(?:thought)?|\AThinking\.\.\."
)
CLOSES = (
    rf"</{REASONING_NAMES}\s*>|\[/think\]|<\|end_(?:of_)?think(?:ing)?\|>|<\|end_of_thought\|>|"
    r"\u25c1/think\u25b7|<unused95>|"
    r"\.\.\.done thinking\."
)
MARK = re.compile(rf"(?P<opens>{OPENS})|(?P<closes>{CLOSES})", re.IGNORECASE)
# The channels of OpenAI's open models: only the final one is the reply.
FINAL_CHANNEL = re.compile(r"<\|channel\|>\s*final[^<]*<\|message\|>", re.IGNORECASE)
ANY_CHANNEL = re.compile(r"<\|channel\|>", re.IGNORECASE)

# A mark of a chat's end, or the head of a next question, which the model wrote itself.
CHAT_END = re.compile(
    r"<\|(?:im_end|im_start|endoftext|end_of_text|eot_id|eom_id|end|return|user|eos|endofturn|end_of_turn|"
    r"start_header_id|END_OF_TURN_TOKEN|END_RESPONSE)\|>|</s>|<eos>|<end_of_turn>|<start_of_turn>|\[/?INST\]|"
    r"<\uff5cend\u2581of\u2581sentence\uff5c>",
    re.IGNORECASE,
)
NEXT_QUESTION = re.compile(
    r"^[ \t>*_#-]{0,20}(?:next\s+|new\s+)?"
    r"(?:question|problem|exercise|instruction|user|human|input|prompt|q|frage|aufgabe|pregunta)"
    r"\s*(?:no\.?\s*|nr\.?\s*|#\s*)?\d*\s*(?:\*\*|__)?\s*:",
    re.IGNORECASE | re.MULTILINE,
)
# "### Question 2" on a line of its own, without a colon.
NEXT_HEADING = re.compile(
    r"^ {0,3}#+ *(?:question|problem|exercise|instruction|input)\b[^\n]*$", re.IGNORECASE | re.MULTILINE
)

SUPERSCRIPTS = str.maketrans("\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207a\u207b", "0123456789+-")
SUPERSCRIPT = re.compile("[\u2070\u00b9\u00b2\u00b3\u2074-\u2079\u207a\u207b]+")
FRACTION_SIGN = re.compile("[\u00bc-\u00be\u2150-\u215e\u2189]")
# Signs that differ in how they are written, and not in what they say.
SAME_SIGNS = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212\ufe63\uff0d", "-"),
        **dict.fromkeys("\u2018\u2019\u201a\u2032\u02bc\uff07", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb\uff02", '"'),
        "\u2044": "/",
        "\u00d7": "*",
        "\u22c5": "*",
        "\u00b7": "*",
    }
)


def answer_part(response: str) -> str:
    """The reply without its reasoning, up to the end of the chat or the next question that the model invented."""
    text = _without_reasoning(response)
    for end in (CHAT_END, NEXT_QUESTION, NEXT_HEADING):
        for match in end.finditer(text):
            if text[: match.start()].strip(" \n\t#*>-"):
                text = text[: match.start()]
                break
    return text


def _without_reasoning(text: str) -> str:
    """What stands outside of the marks. What follows a mark that nothing closes is reasoning that was cut; what stands
    before one that nothing opens is too, since some templates open it in the prompt."""
    finals = list(FINAL_CHANNEL.finditer(text))
    if finals:
        return text[finals[-1].end() :]
    if ANY_CHANNEL.search(text):
        return ""
    parts: list[str] = []
    inside, place = False, 0
    for match in MARK.finditer(text):
        if not inside:
            parts.append(text[place : match.start()])
        if match["closes"] and not inside:
            parts.clear()
        inside, place = bool(match["opens"]), match.end()
    if not inside:
        parts.append(text[place:])
    return " ".join(parts).strip()


def light(text: str) -> str:
    """The text in one spelling: signs, white space and control characters; nothing that carries meaning is lost."""
    text = FRACTION_SIGN.sub(lambda match: f" {unicodedata.normalize('NFKC', match.group())}", text)
    text = SUPERSCRIPT.sub(lambda match: f"^{match.group().translate(SUPERSCRIPTS)}", text)
    text = unicodedata.normalize("NFKC", text).translate(SAME_SIGNS)
    # Characters without a width are dropped, control characters part words.
    text = "".join(
        ""
        if unicodedata.category(sign) == "Cf"
        else " "
        if unicodedata.category(sign) == "Cc" and sign != "\n"
        else sign
        for sign in text
    )
    text = re.sub(r"[^\S\n]+", " ", text)
    return re.sub(r" ?\n ?", "\n", text).strip()


def bare(text: str) -> str:
    """The text without what stands around the whole of it: quotes, stars, code marks, a box, dollars, a full stop."""
    while True:
        stripped = text.strip()
        for pattern in (
            r"```(?:[a-z]+\n)?(.+?)```",
            r"`([^`]+)`",
            r"\*\*([^*]+)\*\*",
            r"\*([^*]+)\*",
            r"__([^_]+)__",
            r"_([^_]+)_",
            r'"([^"]+)"',
            r"'([^']+)'",
            r"\$\$?([^$]+)\$\$?",
            r"\\\((.+)\\\)",
            r"\\\[(.+)\\\]",
            r"\\?boxed ?\{([^{}]+)\}",
            r"\\(?:text|mathrm|mathbf|textbf|mathit|texttt) ?\{([^{}]+)\}",
            r"<answer>(.+)</answer>",
        ):
            if match := re.fullmatch(pattern, stripped, re.DOTALL | re.IGNORECASE):
                stripped = match.group(1).strip()
        if re.search(r"\w\.$", stripped):
            stripped = stripped[:-1]
        if stripped == text:
            return text
        text = stripped


def tidy(text: str) -> str:
    """A light text without the marks of markdown and LaTeX within it; a box is kept as `\\boxed{...}`, `#### ` and
    `<answer>` as an answer's lead."""
    text = re.sub(r"\\(?:text|mathrm|mathbf|textbf|mathit|texttt) ?\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\\[()\[\]]", " ", text)
    text = re.sub(r"\\[,;! ]", "", text).replace("\\%", "%").replace("\\$", "$")
    text = re.sub(r"\^ ?\{ ?(-?\w+) ?\}", r"^\1", text.replace("{,}", ","))
    text = re.sub(r"\\[dt]?frac ?\{ ?(\d+) ?\} ?\{ ?(\d+) ?\}", r" \1/\2", text)
    text = re.sub(r"\\[dt]?frac ?(\d) ?(\d)", r" \1/\2", text)
    text = re.sub(r"\$(?! )([^$\n]+?)(?<! )\$(?!\d)", r"\1", text)  # A formula; "$5 and $6" are two sums.
    text = re.sub(r"```(?:[a-z]+\n)?", " ", text)
    text = re.sub(r"^ {0,3}#{1,3} +|^#{5,6} +", "", text, flags=re.MULTILINE)
    text = re.sub(r"^(?:>(?! ?[\d$]) ?|[*+] )", "", text, flags=re.MULTILINE)
    text = re.sub(r"\*\*(?!\d)|(?<!\d)\*\*|__|`", "", text)  # "10**5" is a power.
    text = re.sub(r"(?<![\w*])\*(?=[\w(\[\"'])|(?<=[\w.)\]\"'])\*(?![\w*])", "", text)
    text = re.sub(r"(?<!\w)_+(?=\w)|(?<=\w)_+(?!\w)", "", text)
    text = re.sub(r"\\(?:times|cdot)\b", "*", text)
    text = re.sub(r"<answer> ?(.+?) ?</answer>", r"\\boxed{\1}", text, flags=re.DOTALL | re.IGNORECASE)
    text = re.sub(r"</?[A-Za-z|_]+ ?/?>|<\|\w+\|>", " ", text)
    text = re.sub(r"(?<![\w])(['\"])([^'\"\n]+)\1(?!\w)", r"\2", text)
    return re.sub(r"[^\S\n]+", " ", text).strip().strip("\"'").strip()
