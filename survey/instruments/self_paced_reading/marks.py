"""Why the times of a passage may not be used. The browser says some of it, and the server the rest."""

from collections.abc import Mapping

# What a browser may say; anything else is dropped.
OF_BROWSER: Mapping[str, str] = {
    "background": "the page was in the background",
    "focus": "another window had the focus",
    "clock": "the browser's clocks jumped or did not agree, as when a device sleeps",
    "second_window": "the passage was open in another window of the browser",
    "pause": "a word was looked at for more than a minute",
}
OF_SERVER: Mapping[str, str] = {
    "opened_again": "the passage was begun more than once, in another window or after loading the page again",
    "not_opened": "nothing said that this window had begun the passage",
    "server_clock": "the times do not fit the time that passed on the server",
}
MARKS: Mapping[str, str] = {**OF_BROWSER, **OF_SERVER}
