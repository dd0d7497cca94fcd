"""Ready forms, which a study file uses by name: their questions, in every language of the pages. Imports no survey
code.

The value is stored and never the words, so that answers of several languages and studies can be combined. If you change
a question or a value, raise the form's version.
"""

from collections.abc import Sequence
from typing import Any

READY_FORMS = ("demographics", "ai_use", "looked_up", "comment")

_FORMS: dict[str, dict[str, Any]] = {
    "demographics": {
        "version": "1",
        "title": {"en": "About you", "de": "Zu Ihrer Person"},
        "text": {
            "en": "These questions help us to say who took part. You may leave out any of them.",
            "de": "Diese Fragen helfen uns zu sagen, wer teilgenommen hat. Sie dürfen jede auslassen.",
        },
        "fields": [
            {
                "name": "age_group",
                "kind": "choice",
                "label": {"en": "How old are you?", "de": "Wie alt sind Sie?"},
                "values": ["under_18", "from_18", "from_25", "from_35", "from_45", "from_55", "from_65"],
                "options": [
                    {"en": "Under 18", "de": "Unter 18"},
                    {"en": "18 to 24", "de": "18 bis 24"},
                    {"en": "25 to 34", "de": "25 bis 34"},
                    {"en": "35 to 44", "de": "35 bis 44"},
                    {"en": "45 to 54", "de": "45 bis 54"},
                    {"en": "55 to 64", "de": "55 bis 64"},
                    {"en": "65 or older", "de": "65 oder älter"},
                ],
                "prefer_not_to_say": True,
            },
            {
                "name": "gender",
                "kind": "choice",
                "label": {"en": "What is your gender?", "de": "Welches Geschlecht haben Sie?"},
                "values": ["woman", "man", "another"],
                "options": [
                    {"en": "Woman", "de": "Frau"},
                    {"en": "Man", "de": "Mann"},
                    {"en": "Another or non-binary", "de": "Ein anderes oder nicht binär"},
                ],
                "prefer_not_to_say": True,
            },
            {
                "name": "education",
                "kind": "choice",
                "label": {
                    "en": "What is the highest education that you have completed?",
                    "de": "Welche höchste Ausbildung haben Sie abgeschlossen?",
                },
                "values": ["none", "school", "vocational", "bachelor", "master", "doctorate"],
                "options": [
                    {"en": "No school leaving certificate", "de": "Kein Schulabschluss"},
                    {"en": "School", "de": "Schule"},
                    {"en": "Vocational training", "de": "Berufsausbildung"},
                    {"en": "Bachelor’s degree or the like", "de": "Bachelor oder Vergleichbares"},
                    {"en": "Master’s degree or the like", "de": "Master oder Vergleichbares"},
                    {"en": "Doctorate", "de": "Promotion"},
                ],
                "prefer_not_to_say": True,
            },
        ],
    },
    "ai_use": {
        "version": "1",
        "title": {"en": "You and AI programs", "de": "Sie und KI-Programme"},
        "text": {
            "en": "Think of programs that you write to and that answer in sentences, such as chatbots.",
            "de": "Denken Sie an Programme, denen man schreibt und die in Sätzen antworten, etwa Chatbots.",
        },
        "fields": [
            {
                "name": "frequency",
                "kind": "choice",
                "label": {"en": "How often do you use such programs?", "de": "Wie oft nutzen Sie solche Programme?"},
                "values": ["never", "tried", "monthly", "weekly", "daily"],
                "options": [
                    {"en": "I have never used one", "de": "Ich habe noch nie eines genutzt"},
                    {"en": "I have tried one, no more", "de": "Ich habe eines ausprobiert, mehr nicht"},
                    {"en": "A few times a month or less", "de": "Ein paar Mal im Monat oder seltener"},
                    {"en": "A few times a week", "de": "Ein paar Mal in der Woche"},
                    {"en": "Every day or almost", "de": "Jeden oder fast jeden Tag"},
                ],
                "prefer_not_to_say": True,
            },
            {
                "name": "purposes",
                "kind": "multiple",
                "label": {"en": "What do you use them for?", "de": "Wofür nutzen Sie sie?"},
                "values": ["search", "writing", "work", "learning", "code", "conversation", "nothing"],
                "options": [
                    {"en": "Looking things up", "de": "Etwas nachschlagen"},
                    {"en": "Writing or translating", "de": "Schreiben oder Übersetzen"},
                    {"en": "Other tasks at work", "de": "Andere Aufgaben bei der Arbeit"},
                    {"en": "School, studies, learning", "de": "Schule, Studium, Lernen"},
                    {"en": "Programming", "de": "Programmieren"},
                    {"en": "Conversation or fun", "de": "Unterhaltung oder Spaß"},
                    {"en": "Nothing of these", "de": "Nichts davon"},
                ],
                "exclusive": ["nothing"],
            },
            {
                "name": "familiarity",
                "kind": "likert",
                "label": {
                    "en": "How well do you know what such programs can do and cannot do?",
                    "de": "Wie gut wissen Sie, was solche Programme können und was nicht?",
                },
                "points": 5,
                "labels": [{"en": "Not at all", "de": "Gar nicht"}, {"en": "Very well", "de": "Sehr gut"}],
            },
        ],
    },
    "looked_up": {
        "version": "1",
        "title": {"en": "How you answered", "de": "Wie Sie geantwortet haben"},
        "text": {
            "en": "Whatever you say here helps us to read your answers as you meant them.",
            "de": "Was auch immer Sie hier sagen, hilft uns, Ihre Antworten so zu lesen, wie Sie sie meinten.",
        },
        "fields": [
            {
                "name": "looked_up",
                "kind": "choice",
                "label": {
                    "en": "Did you look anything up or ask an AI? Your pay is unaffected.",
                    "de": "Haben Sie etwas nachgeschlagen oder eine KI gefragt? Ihre Bezahlung ändert sich nicht.",
                },
                "values": ["no", "looked_up", "asked_ai", "both"],
                "options": [
                    {"en": "No, neither", "de": "Nein, nichts davon"},
                    {"en": "I looked something up", "de": "Ich habe etwas nachgeschlagen"},
                    {"en": "I asked an AI", "de": "Ich habe eine KI gefragt"},
                    {"en": "Both", "de": "Beides"},
                ],
                "prefer_not_to_say": True,
            },
        ],
    },
    "comment": {
        "version": "1",
        "title": {"en": "Anything else?", "de": "Noch etwas?"},
        "fields": [
            {
                "name": "comment",
                "kind": "text",
                "label": {
                    "en": "Is there anything that you would like to tell us about this study?",
                    "de": "Möchten Sie uns zu dieser Studie noch etwas sagen?",
                },
                "max_characters": 2000,
            },
        ],
    },
}


def ready_form(name: str, languages: Sequence[str]) -> dict[str, Any]:
    """The keys of a `[[blocks]]` table: its fixed name and version, title, text and fields, in these languages."""
    wanted: dict[str, Any] = _in({"name": name, **_FORMS[name]}, languages)
    return wanted


def _in(value: Any, languages: Sequence[str]) -> Any:
    if isinstance(value, dict):
        if set(value) == {"en", "de"}:
            return {language: value[language] for language in languages}
        return {key: _in(inner, languages) for key, inner in value.items()}
    return [_in(inner, languages) for inner in value] if isinstance(value, list) else value
