"""Random values of the slots, as people write them.

Functions of a `StableRandom` that return a list of pieces (text, slot); the
slot is None for text that is not part of a value.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keras_attn.datasets.stable_random import StableRandom


FIRST_NAMES = tuple(
    """Aisha Alice Amelia Amir Ana Andrew Anna Anthony April Arthur Aurora Ben
    Bianca Carlos Charlotte Chloé Claire Daniel David Diego Dmitri Elena Elif
    Emma Eric Esther Eva Felix Fiona Francis George Grace Hana Harry Helen Henry
    Hugo Ibrahim Ida Ines Isaac Ivan Jack James Jane Jasmine Jin Joanna John
    Jordan José Julia June Karim Kate Kevin Lara Laura Leo Liam Linh Louis Lucy
    Luis Marco Maria Mark Martin Mary May Mei Mia Michael Mina Morgan Nadia Nia
    Nina Noah Olga Oliver Omar Oscar Paul Peter Priya Rachel Ravi Robert Rosa
    Ruth Sam Sara Scott Simon Sofia Stella Taylor Thomas Tim Victor Wei William
    Yuki Zoë""".split()
)
# Some are first names or words too.
LAST_NAMES = tuple(
    """Adams Ahmed Allen Andersson Baker Bauer Becker Bell Brown Carter Chen
    Clark Cohen Cook Costa Cruz Davies Day Diaz Dubois Evans Fischer Flores Ford
    Fox Francis Garcia Gordon Green Gupta Hall Hansen Harris Hassan Hill Hoffman
    Hughes Ito James Jensen Johnson Jones Jordan Kaya Kelly Khan Kim King Klein
    Kowalski Kumar Laurent Lee Lewis Li Lopez March Martin Meyer Miller Mitchell
    Moore Morgan Moreau Müller Nguyen Novak Nowak Okafor Olsen Park Parker Patel
    Peterson Petrov Phillips Quinn Ramirez Reed Rivera Roberts Robinson Rossi
    Russo Sato Schmidt Scott Shah Silva Singh Smith Stone Suzuki Tanaka Taylor
    Thomas Turner Walker Wang Ward White Wilson Wood Wright Yang Yilmaz
    Young""".split()
)
_NUMBERS = tuple(
    "one two three four five six seven eight nine ten eleven twelve".split()
)
_WEEKDAYS = tuple(
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
)
_MONTHS = tuple(
    "January February March April May June July August September October "
    "November December".split()
)
# Dates that have no preposition, and dates after "on".
_RELATIVE_DATES = (
    *("today", "tonight", "tomorrow", "the day after tomorrow"),
    *("tomorrow night", "in two days", "in three days", "a week from today"),
)
_HOLIDAYS = ("Christmas Eve", "New Year's Eve", "Valentine's Day")


def first_name(random: "StableRandom") -> list[Any]:
    """Returns a first name."""
    return [(random.choice(FIRST_NAMES), "first_name")]


def last_name(random: "StableRandom") -> list[Any]:
    """Returns a last name."""
    return [(random.choice(LAST_NAMES), "last_name")]


def people(random: "StableRandom") -> list[Any]:
    """Returns a number of people, without a noun: "4" or "four"."""
    number = 2 + min(random.integer(8), random.integer(11))
    is_word = random.happens(0.4)
    return [(_NUMBERS[number - 1] if is_word else str(number), "people")]


def party(random: "StableRandom") -> list[Any]:
    """Returns a number of people that cannot be a time: "4 guests"."""
    if random.happens(0.25):
        adults, children = 2 + random.integer(5), 1 + random.integer(4)
        is_word = random.happens(0.5)
        texts = [
            _NUMBERS[number - 1] if is_word else str(number)
            for number in (adults, children)
        ]
        child, kids = random.choice(
            (("child", "children"), ("kid", "kids"), ("baby", "babies"))
        )
        noun = child if children == 1 else kids
        text = f"{texts[0]} adults and {texts[1]} {noun}"
        return [(text, "people")]
    ((number, _),) = people(random)
    noun = random.choice(("people", "guests", "persons", "of us", "diners"))
    return [(number, "people"), (f" {noun}", None)]


def time(random: "StableRandom") -> Any:
    """Returns any time, such as after "at": "7" or "half past seven"."""
    if random.happens(0.25):
        return bare_time(random)
    return clear_time(random)


def bare_time(random: "StableRandom") -> list[Any]:
    """Returns a time that might be a number of people: "7" or "seven"."""
    hour = _hour(random)
    return [(_NUMBERS[hour - 1] if random.happens(0.4) else str(hour), "time")]


def clear_time(random: "StableRandom") -> list[Any]:
    """Returns a time that can be nothing else: "7 pm", "half past seven"."""
    return [(_clear_time(random), "time")]


def _clear_time(random):
    hour = _hour(random)
    half = "am" if hour == 11 else "pm"
    minutes = random.choice(("00", "15", "30", "45"), (3, 2, 4, 2))
    digits, word = str(hour), _NUMBERS[hour - 1]
    kind = random.random()
    if kind < 0.3:
        space = " " if random.happens(0.5) else ""
        clock = digits if minutes == "00" else f"{digits}:{minutes}"
        return f"{clock}{space}{half}"
    if kind < 0.42:
        return f"{digits}:{minutes}"
    if kind < 0.54:
        return f"{hour if hour in (11, 12) else hour + 12}:{minutes}"
    if kind < 0.64:
        name = word if random.happens(0.5) else digits
        return f"{name} o'clock"
    if kind < 0.8:
        past = {"15": "quarter past", "30": "half past", "00": "half past"}
        if minutes == "45":
            return f"quarter to {_NUMBERS[hour % 12]}"
        return f"{past[minutes]} {word}"
    if kind < 0.9:
        spoken = {"15": "fifteen", "45": "forty-five"}
        return f"{word} {spoken.get(minutes, 'thirty')}"
    if kind < 0.96:
        name = word if random.happens(0.5) else digits
        part = {11: "morning", 12: "afternoon"}.get(hour)
        part = part or ("afternoon" if hour < 5 else "evening")
        return f"{name} in the {part}"
    return "noon"


def date(random: "StableRandom") -> list[Any]:
    """Returns any date: "Friday", "May 12th", "tomorrow"."""
    if random.happens(0.4):
        return [(_adverbial_date(random), "date")]
    return [(_calendar_date(random), "date")]


def on_date(random: "StableRandom") -> list[Any]:
    """Returns a date with "on", if it takes one."""
    if random.happens(0.4):
        return [(_adverbial_date(random), "date")]
    return [("on ", None), (_calendar_date(random), "date")]


def _adverbial_date(random):
    kind = random.random()
    if kind < 0.6:
        return random.choice(_RELATIVE_DATES, (2, 4, 6, 1, 1, 1, 1, 1))
    weekday = random.choice(_WEEKDAYS)
    before = random.choice(("next", "this", "this coming", "a week from"))
    return f"{before} {weekday}"


def _calendar_date(random):
    weekday, month = random.choice(_WEEKDAYS), random.choice(_MONTHS)
    number = 1 + random.integer(28)
    day = f"{number}{_ordinal_suffix(number)}"
    kind = random.random()
    if kind < 0.25:
        return weekday
    if kind < 0.4:
        return f"{weekday} the {day}"
    if kind < 0.5:
        return f"the {day}"
    if kind < 0.6:
        return f"the {day} of {month}"
    if kind < 0.7:
        return f"{month} {day}"
    if kind < 0.77:
        return f"{month} {number}"
    if kind < 0.84:
        return f"{number} {month}"
    if kind < 0.91:
        return f"{weekday}, {month} {day}"
    if kind < 0.96:
        return f"{weekday} {day} {month}"
    return random.choice(_HOLIDAYS)


def _ordinal_suffix(number):
    if number in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def _hour(random):
    return random.choice(
        (11, 12, 1, 2, 5, 6, 7, 8, 9, 10), (1, 2, 2, 1, 2, 4, 6, 5, 3, 1)
    )
