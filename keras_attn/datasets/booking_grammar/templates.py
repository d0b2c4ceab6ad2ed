"""Wordings of turns.

A template has alternatives in brackets, "[Hi|Hello]", and fields in braces,
"{time}". Wordings with one of `HELD_OUT_WORDINGS` are in test turns only.
"""

import re
from typing import Any

HELD_OUT_WORDINGS = (
    "any chance",
    "as well",
    "be joining",
    "can't wait",
    "cheers",
    "company of",
    "client",
    "fancy",
    "get us in",
    "how about",
    "i go by",
    "in the shade",
    "never mind",
    "on behalf of",
    "on second thought",
    "on foot",
    "pencil",
    "put down",
    "sesame",
    "stadium",
    "suit us",
    "wondering",
)
GREETINGS = "[hi|hello|hey|hi there|good evening|good morning|good afternoon]"
PLEASE = "[ please|, please]"
IF_POSSIBLE = "[, if possible|, if that's possible]"
THANKS = (
    "[thanks|thank you|many thanks|thank you very much|thanks in advance|"
    "looking forward to it|have a nice day|cheers|can't wait]"
)
# Requests; {details} are some of the number of people, date and time.
BOOKINGS = (
    "[I'd|I would|we'd|we would] like to [book|reserve|have|get] a table "
    "{details}",
    "[I|we] [want|need|wish] to [book|reserve] a table {details}",
    "[can|could|may] [I|we] [book|reserve|get|have] a table {details}",
    "[can|could] you [book|reserve] a table for [me|us] {details}",
    "[I'd|I would|we'd|we would] like to make a [reservation|booking] "
    "{details}",
    "[can|could] [I|we] make a [reservation|booking] {details}",
    "[I am|I'm|we are|we're] looking for a [table|reservation] {details}",
    "[do you have|have you got|is there] [a table|anything|something] "
    "[free|available|left] {details}",
    "a table {details}",
    "table {details}",
    "a [reservation|booking] {details}",
    "[I|we] need a table {details}",
    "please [book|reserve] a table {details}",
    "is it possible to [book|reserve|get] a table {details}",
    "would it be possible to have a table {details}",
    "do you still have [something|a free table] {when}",
    "[we'd|we would|I'd] like to come[ over| in|] {when}",
    "[can|could] we come[ over| in|] {when}",
    "{on_date} [there will be|we will be|we are|we'll be] {party}, at {time}",
    "do you take [reservations|bookings] {details}",
    "[I was|we were] hoping to [book|reserve|get] a table {details}",
    "I'm [calling|writing] to book a table {details}",
    "any chance of a table {details}",
    "[I was|I'm|we were] wondering whether you have a table {details}",
    "[can|could] you [get us in|pencil us in] {details}",
    "[we|I] fancy [dinner|lunch] at your place {when}",
    "I'd like to book on behalf of my boss, {details}",
)
# Sentences after a request.
NAMES = (
    "my name is {first_name} {last_name}",
    "the name is {first_name} {last_name}",
    "the name is {last_name}",
    "it's under {last_name}",
    "[book|put|reserve] it under [{last_name}|the name {last_name}|"
    "the name of {first_name} {last_name}]",
    "this is {first_name} {last_name}",
    "this is {first_name}",
    "I'm {first_name}",
    "[please book|book|reserve] it for {first_name} {last_name}",
    "first name {first_name}, last name {last_name}",
    "last name {last_name}, first name {first_name}",
    "I go by {first_name}",
    "you can put down {first_name} {last_name}",
)
# Answers to a question, by what the system asked for.
ANSWERS = {
    ("time",): (
        "{time}",
        "at {time}",
        "[around|about] {time}",
        "at [around|about] {time}",
        "{clear_time}, [if possible|if you have anything]",
        "let's say {time}",
        "make it {time}",
        "[we'd|we would|I'd] like to come at {time}",
        "we will arrive at {time}",
        "{time} [would be great|works for us|would be perfect|is fine]",
        "[do you have|is there] anything at {time}",
        "[can|could] we come at {time}",
        "[preferably|ideally] [at|around] {time}",
        "not before {time}",
        "I was thinking {time}",
        "{time} or [so|thereabouts]",
        "how about {time}",
        "{time} would suit us",
    ),
    ("date",): (
        "{date}",
        "{on_date}",
        "for {date}",
        "{date}, if [possible|you have anything]",
        "let's say {date}",
        "make it {date}",
        "{date} [would be great|works for us|would be perfect|is fine]",
        "[we'd|we would|I'd] like to come {on_date}",
        "[do you have|is there] anything {on_date}",
        "it's for {date}",
        "it would be {on_date}",
        "[preferably|ideally] {on_date}",
        "I was thinking {date}",
        "how about {date}",
        "{date} would suit us",
    ),
    ("people",): (
        "{people}",
        "{party}",
        "for {people}",
        "for {party}",
        "[there will be|we will be|we are|we're|it will be] {people}",
        "[there will be|we will be|we are|we're|it will be] {party}",
        "just {people}",
        "just {party}",
        "[make it|let's say] {people}",
        "[about|around|probably] {people}",
        "a table for {people}",
        "{people} in total",
        "it's for {people}",
        "we are a group of {people}",
        "[I think|I guess] {people}",
        "how about {people}",
        "{people} of us will be joining",
        "a company of {people}",
    ),
    ("first_name",): (
        "{first_name}",
        "it's {first_name}",
        "my [first |]name is {first_name}",
        "the first name is {first_name}",
        "that's {first_name}",
        "I'm {first_name}",
        "{first_name} {last_name}",
        "[it's|I'm] {first_name} {last_name}",
        "my name is {first_name} {last_name}",
        "please use {first_name}",
        "I go by {first_name}",
        "put down {first_name}",
    ),
    ("last_name",): (
        "{last_name}",
        "it's {last_name}",
        "my [last |family |sur]name is {last_name}",
        "the last name is {last_name}",
        "that's {last_name}",
        "under {last_name}",
        "please use {last_name}",
        "[Mr|Ms|Mrs] {last_name}",
        "last name {last_name}",
        "put down {last_name}",
    ),
    ("date", "time"): (
        "{on_date} at {time}",
        "{date} at {time}",
        "{date}, {clear_time}",
        "{date}, [around|about] {time}",
        "at {time} {on_date}",
        "{clear_time} {on_date}",
        "for {date} at {time}",
        "[we'd|we would] like to come {on_date} at {time}",
        "[preferably|ideally] {on_date} at {time}",
        "{date}, any time after {time}",
        "how about {date} at {time}",
    ),
    ("time", "people"): (
        "at {time} for {people}",
        "for {people} at {time}",
        "{party} at {time}",
        "{clear_time}, {party}",
        "{party}, [around|about] {time}",
        "[we are|we're|we will be] {party}, and we would like to come at "
        "{time}",
        "a company of {people} at {time}",
    ),
    ("date", "people"): (
        "for {people} {on_date}",
        "{party} {on_date}",
        "{date} for {people}",
        "{date}, for {party}",
        "{on_date}, and [we are|we're|we will be] {party}",
        "{party} will be joining {on_date}",
    ),
    ("date", "time", "people"): (
        "{details}",
        "{people} people, {on_date}, {clear_time}",
        "{date} at {time} for {people}",
        "for {people} {on_date} at {time}",
        "[we are|we're] {party} and would like to come {on_date} at {time}",
        "{date}, {party}, [around|about] {clear_time}",
        "how about {date} at {time} for {people}",
    ),
    ("first_name", "last_name"): (
        "{first_name} {last_name}",
        "it's {first_name} {last_name}",
        "[my|the] name is {first_name} {last_name}",
        "I'm {first_name} {last_name}",
        "this is {first_name} {last_name}",
        "under {first_name} {last_name}",
        "first name {first_name}, last name {last_name}",
        "the last name is {last_name} and the first name is {first_name}",
        "for {first_name} {last_name}",
        "it's my [partner|husband|wife|friend], {first_name} {last_name}",
        "put down {first_name} {last_name}",
    ),
}
# Changes of mind, at any time. The first of two values is not valid any more.
CORRECTIONS = (
    "actually, [make it|let's make it|can we make it] {party}",
    "actually, [make it|let's make it|can we make it] {clear_time}",
    "actually, [make it|let's make it|can we do] {date}",
    "sorry, I meant [{clear_time}|{date}|{party}]",
    "sorry, not {old_time} but {clear_time}",
    "sorry, not {old_date} but {date}",
    "not {old_party}, {party}",
    "[can|could] we come at {time} instead of {old_time}",
    "[can|could] we come {on_date} instead of {old_date}",
    "[can|could] you [change|move] it from {old_time} to {clear_time}",
    "[can|could] you [change|move] [it|the booking] to {date}",
    "[can|could] you [change|move] [it|the booking] to {clear_time}",
    "there will be {party} [instead|now|after all]",
    "{old_time} [is too late|is too early|does not work], "
    "[so {clear_time}|{clear_time} is better]",
    "on second thought, [{date}|{clear_time}|{party}] would be better",
)
# Turns without a value. Their numbers, dates and times are not about the table.
OTHERS = (
    "[yes|yeah|yep|sure|of course|right|okay|ok]",
    "[yes|yeah|sure|okay], [that's right|that works|that's fine|go ahead|"
    "sounds good|that's correct|perfect|exactly|that would be great]",
    "[no|nope|no], [that's all|that's it|nothing else|thank you|that's wrong|"
    "that won't work|not really|never mind]",
    "[great|perfect|wonderful|excellent|lovely], [see you then|see you soon|"
    "that's all|that works for {guest}|that's settled]",
    "[I'd|I would|we'd|we would] like to [book|reserve] a table",
    "[can|could|may] [I|we] [book|reserve] a table",
    "[I'd|I would|we'd] like to [make|change|cancel|confirm] [a|my|our] "
    "[reservation|booking]",
    "I [booked|reserved] a table [yesterday|last week|two days ago|an hour ago]"
    ", but I [have no confirmation|need to cancel it|forgot for when]",
    "do you [have|serve|offer] {offer}",
    "is there {offer}[ for {guest}| on the menu|]",
    "is [the food|the fish|the soup|everything|the dessert] "
    "[gluten-free|vegan|vegetarian|kosher|halal|fresh|very spicy]",
    "[can|could|may] we [sit|have a table|be seated] {where}",
    "[I'd|we'd] prefer to sit {where}",
    "{relative} is [allergic to|intolerant to] {food}",
    "{relative} does not eat {food}",
    "[we are|we're] celebrating {relative}'s {age} birthday",
    "it's {relative}'s {age} birthday",
    "my [phone |mobile |]number is {phone}",
    "you can [reach|call] me [at|on|under] {phone}",
    "[can|may|could] [we|I] bring [a dog|two dogs|our own wine|a cake|"
    "a birthday cake|three dogs|flowers]",
    "we need [one|two|three|1|2|3|4] [high chairs|booster seats|parking "
    "spaces|vegan menus]",
    "[what time|when] do you [open|close] on [Mondays|Tuesdays|Wednesdays|"
    "Thursdays|Fridays|Saturdays|Sundays|weekdays|weekends|holidays]",
    "are you [open|busy|closed] on [Mondays|Tuesdays|Wednesdays|Thursdays|"
    "Fridays|Saturdays|Sundays|weekdays|weekends|holidays]",
    "[where|on which street|on which floor] [are you|is the restaurant]",
    "how [much is|expensive is] the [set menu|tasting menu|lunch menu|wine]",
    "how [do I get|long does it take to get] [there|to you] from {from}",
    "is there parking [near|at|close to] [the restaurant|your place|{from}]",
    "I [don't know|do not know|am not sure] yet[|, sorry|, let me think]",
    "I have to [ask|check with|call] {relative} first",
    "let me [ask|check with|call] {relative}",
    "[what|which dish|which wine] do you recommend for {relative}",
    "[sorry|excuse me], [I didn't get that|could you repeat that|what was the "
    "question|I don't understand]",
    "[I|we] [was|were] there [last year|last week|two weeks ago] and loved "
    "the {food}",
    "it depends on {relative}",
    "does the [tasting menu|set menu|buffet] [include|come with] {food}",
    "do you deliver [to {from}|{food}]",
    "do you have [a children's menu|{offer}] as well",
    "can I get [there|to you] on foot",
)
FIELDS = {
    "offer": (
        "[vegetarian|vegan|gluten-free|kosher|halal|organic|seasonal] "
        "[dishes|food|starters|desserts|options]",
        "[live music|wifi|parking|a terrace|a garden|a bar|a buffet|a dress "
        "code|a wine list|a lift|air conditioning|a tasting menu|brunch]",
        "[craft|local|alcohol-free|imported] [beer|wine|drinks]",
    ),
    "guest": ("us", "me", "{relative}", "everyone", "all of us", "children"),
    "where": (
        "[outside|inside|by the window|on the terrace|in the garden|at the "
        "bar|near the entrance|in a quiet corner|near the kitchen|on the "
        "second floor|away from the door|next to the fireplace|in the shade]",
    ),
    "relative": (
        "my [brother|sister|mother|father|wife|husband|partner|boss|friend|"
        "colleague|daughter|son|grandmother|grandfather|uncle|aunt|cousin|"
        "neighbor|girlfriend|boyfriend|teacher|client]",
        "one [of us|of the guests|of my friends|of my colleagues|of our kids]",
    ),
    "food": (
        "[nuts|peanuts|milk|eggs|fish|shellfish|meat|pork|beef|cheese|garlic|"
        "gluten|seafood|mushrooms|onions|soy|dessert|bread|wheat|tomatoes|"
        "strawberries|chocolate|pasta|rice|sesame]",
    ),
    "from": (
        "[the station|the airport|downtown|the harbor|the museum|the old town|"
        "the main square|the university|the theater|the stadium|the beach]",
    ),
}

_TOKEN = re.compile(r"[\[\]|]|\{\w+\}|[^\[\]|{}]+")


def parse(template: Any) -> list[Any]:
    """Returns a list of parts: text, a tuple (field,), or alternatives.

    Alternatives are a list of lists of parts.
    """
    stack = [[[]]]
    for token in _TOKEN.findall(template):
        if token == "[":
            stack.append([[]])
        elif token == "|":
            stack[-1].append([])
        elif token == "]":
            alternatives = stack.pop()
            stack[-1][-1].append(alternatives)
        elif token.startswith("{"):
            stack[-1][-1].append((token[1:-1],))
        else:
            stack[-1][-1].append(token)
    ((parts,),) = stack
    return parts
