"""Words of the phrase grammar, in their dictionary forms."""

from typing import Any, NamedTuple


class Noun(NamedTuple):
    """A noun: its translation, gender ("m" or "f") and class."""

    spanish: str
    gender: str
    kind: str
    is_mass: bool


class Adjective(NamedTuple):
    """An adjective: its translation, copula, and the nouns it describes."""

    spanish: str
    copula: str
    is_gradable: bool
    is_attributive: bool
    kinds: frozenset[Any]


class Verb(NamedTuple):
    """A verb, with the classes of its subjects and objects."""

    past: str
    particle: str
    spanish: str
    spanish_particle: str
    subjects: frozenset[Any]
    objects: frozenset[Any]


class Determiner(NamedTuple):
    """A determiner: its Spanish form per gender and number."""

    forms: dict[Any, Any]
    is_definite: bool


class Preposition(NamedTuple):
    """A preposition of location, with the classes of nouns it takes."""

    spanish: str
    kinds: frozenset[Any]


class Auxiliary(NamedTuple):
    """What comes before an infinitive: "want to", "querer"."""

    english: str
    spanish: str
    spanish_particle: str


# english|spanish|gender. The class decides what a noun can do and which
# adjectives describe it. An asterisk marks mass nouns. There are no feminine
# nouns with the article "el" (agua).
_NOUNS = {
    "human": """man|hombre|m woman|mujer|f boy|niño|m girl|niña|f
        brother|hermano|m sister|hermana|f grandfather|abuelo|m
        grandmother|abuela|f uncle|tío|m aunt|tía|f king|rey|m queen|reina|f
        friend|amigo|m teacher|profesor|m doctor|médico|m student|estudiante|m
        neighbor|vecino|m actress|actriz|f""",
    "animal": """cat|gato|m dog|perro|m horse|caballo|m cow|vaca|f
        bird|pájaro|m mouse|ratón|m rabbit|conejo|m duck|pato|m lion|león|m
        turtle|tortuga|f snake|serpiente|f wolf|lobo|m hen|gallina|f""",
    "food": """apple|manzana|f tomato|tomate|m egg|huevo|m lemon|limón|m
        cake|pastel|m pear|pera|f carrot|zanahoria|f onion|cebolla|f
        bread*|pan|m cheese*|queso|m
        rice*|arroz|m meat*|carne|f soup*|sopa|f""",
    "drink": "milk*|leche|f coffee*|café|m tea*|té|m wine*|vino|m "
    "beer*|cerveza|f",
    "text": """book|libro|m letter|carta|f newspaper|periódico|m
        poem|poema|m novel|novela|f""",
    "picture": "photo|foto|f map|mapa|m",
    "object": """key|llave|f knife|cuchillo|m clock|reloj|m
        phone|teléfono|m lamp|lámpara|f umbrella|paraguas|m""",
    "container": "bottle|botella|f box|caja|f cup|taza|f",
    "clothes": """shirt|camisa|f hat|sombrero|m coat|abrigo|m
        shoe|zapato|m dress|vestido|m""",
    "furniture": "table|mesa|f chair|silla|f bed|cama|f sofa|sofá|m",
    "opening": "door|puerta|f window|ventana|f",
    "building": """house|casa|f school|escuela|f church|iglesia|f
        museum|museo|m hospital|hospital|m hotel|hotel|m
        library|biblioteca|f station|estación|f market|mercado|m
        restaurant|restaurante|m""",
    "area": """park|parque|m garden|jardín|m city|ciudad|f
        village|pueblo|m forest|bosque|m""",
    "landmark": "tree|árbol|m river|río|m bridge|puente|m mountain|montaña|f",
    "vehicle": """car|coche|m bus|autobús|m train|tren|m
        bicycle|bicicleta|f boat|barco|m plane|avión|m""",
}
_GROUPS = {
    "thing": "text picture object container clothes furniture vehicle",
    "location": "building area",
}

# english|spanish|copula|flags|classes. Flag g: gradable (very big). Flag a:
# attributive (a big cat, but no "ready cat"). There are no adjectives with
# another form before the noun (buen, gran).
_ADJECTIVES = """
big|grande|ser|ga|animal thing location landmark
large|grande|ser|ga|animal thing location landmark
small|pequeño|ser|ga|animal thing location landmark
old|viejo|ser|ga|animal thing building landmark
new|nuevo|ser|a|clothes furniture vehicle object container building
tall|alto|ser|ga|human building
young|joven|ser|ga|human animal
famous|famoso|ser|ga|human text location picture
intelligent|inteligente|ser|ga|human animal
kind|amable|ser|ga|human
strong|fuerte|ser|ga|human animal
weak|débil|ser|ga|human animal
elegant|elegante|ser|ga|human clothes building
beautiful|hermoso|ser|ga|human animal location landmark clothes picture
ugly|feo|ser|ga|animal thing building
strange|extraño|ser|ga|human animal thing location
expensive|caro|ser|ga|clothes object furniture vehicle food drink
cheap|barato|ser|ga|clothes object furniture vehicle food drink
long|largo|ser|ga|text clothes landmark
modern|moderno|ser|ga|building vehicle furniture object
heavy|pesado|ser|ga|furniture object container vehicle
interesting|interesante|ser|ga|text location picture
boring|aburrido|ser|ga|text area
difficult|difícil|ser|ga|text
dangerous|peligroso|ser|ga|animal area landmark vehicle
sweet|dulce|ser|ga|food drink
red|rojo|ser|a|clothes container vehicle furniture opening object
blue|azul|ser|a|clothes container vehicle furniture opening object
white|blanco|ser|a|animal clothes container vehicle furniture opening
black|negro|ser|a|animal clothes container vehicle furniture object
green|verde|ser|a|clothes container vehicle furniture opening
yellow|amarillo|ser|a|clothes container vehicle furniture opening
gray|gris|ser|a|animal clothes vehicle furniture
brown|marrón|ser|a|animal clothes furniture opening
french|francés|ser|a|clothes vehicle food drink furniture object
german|alemán|ser|a|clothes vehicle food drink furniture object
mexican|mexicano|ser|a|clothes food drink furniture object
tired|cansado|estar|ga|human animal
happy|contento|estar|ga|human
sad|triste|estar|ga|human
sick|enfermo|estar|ga|human animal
angry|enojado|estar|ga|human
busy|ocupado|estar|ga|human
worried|preocupado|estar|ga|human
bored|aburrido|estar|ga|human
nervous|nervioso|estar|ga|human animal
ready|listo|estar||human food vehicle clothes
calm|tranquilo|estar|ga|human animal
wet|mojado|estar|ga|human animal clothes furniture
open|abierto|estar|a|opening building container
closed|cerrado|estar|a|opening building container
broken|roto|estar|a|object container furniture opening
empty|vacío|estar|a|container building vehicle
full|lleno|estar|a|container
dirty|sucio|estar|ga|clothes object container furniture opening vehicle
clean|limpio|estar|ga|clothes object container furniture opening vehicle
cold|frío|estar|ga|food drink
hot|caliente|estar|ga|food drink
fresh|fresco|estar|ga|food
"""
# At most one adjective of a row describes the same thing.
SCALES = (
    frozenset({"big", "large", "small"}),
    frozenset({"old", "new", "young", "modern"}),
    frozenset({"expensive", "cheap"}),
    frozenset({"strong", "weak"}),
    frozenset({"beautiful", "ugly"}),
    frozenset({"interesting", "boring"}),
)

# english|past|english particle|infinitive|spanish particle|subjects|objects.
# Verbs of lasting states have no past form: "had" is not always a preterite.
_VERBS = """
eat|ate||comer||human animal|food
cook|cooked||cocinar||human|food
drink|drank||beber||human|drink
buy|bought||comprar||human|thing food drink animal
sell|sold||vender||human|thing food drink animal
read|read||leer||human|text
write|wrote||escribir||human|text
open|opened||abrir||human|opening container
close|closed||cerrar||human|opening container
clean|cleaned||limpiar||human|furniture building vehicle object opening
paint|painted||pintar||human|furniture opening building animal
draw|drew||dibujar||human|animal building landmark vehicle
see|saw||ver||human animal|human location landmark thing
look|looked|for|buscar||human animal|human thing food
find|found||encontrar||human animal|human thing food
lose|lost||perder||human|object clothes text picture
visit|visited||visitar||human|human location
help|helped||ayudar||human|human
call|called||llamar||human|human
invite|invited||invitar||human|human
wait|waited|for|esperar||human|human vehicle
bring|brought||traer||human|food drink container object clothes
repair|repaired||reparar||human|vehicle furniture object
wear|wore||llevar||human|clothes
wash|washed||lavar||human|clothes vehicle container
have|||tener||human|thing animal
go|went|to|ir|a|human animal vehicle|location
walk|walked|to|caminar|a|human animal|location
run|ran|to|correr|a|human animal|location
return|returned|to|volver|a|human animal vehicle|location
arrive|arrived|at|llegar|a|human vehicle|location
come|came|from|venir|de|human animal vehicle|location
leave|left||salir|de|human animal vehicle|building area
give|gave||dar||human|text picture object container clothes
show|showed||mostrar||human|text picture object container clothes
sleep|slept||dormir||human animal|
sing|sang||cantar||human|
dance|danced||bailar||human|
work|worked||trabajar||human|
play|played||jugar||human animal|
rest|rested||descansar||human animal|
study|studied||estudiar||human|
live||in|vivir|en|human animal|location
"""

# english|masculine|feminine|masculine plural|feminine plural|definite
_DETERMINERS = """
the|el|la|los|las|definite
a|un|una|||
another|otro|otra|||
this|este|esta|||definite
that|ese|esa|||definite
these|||estos|estas|definite
those|||esos|esas|definite
my|mi|mi|mis|mis|definite
our|nuestro|nuestra|nuestros|nuestras|definite
his|su|su|sus|sus|definite
her|su|su|sus|sus|definite
their|su|su|sus|sus|definite
all the|||todos los|todas las|definite
both|||ambos|ambas|definite
some|||algunos|algunas|
many|||muchos|muchas|
several|||varios|varias|
two|||dos|dos|
three|||tres|tres|
four|||cuatro|cuatro|
five|||cinco|cinco|
six|||seis|seis|
seven|||siete|siete|
eight|||ocho|ocho|
nine|||nueve|nueve|
ten|||diez|diez|
"""

# Spanish, gender and person (see `noun_phrases`). Spanish omits subjects that
# the verb form implies.
PRONOUNS = {
    "i": ("", "m", 0),
    "he": ("él", "m", 1),
    "she": ("ella", "f", 1),
    "we": ("", "m", 2),
    "they": ("ellos", "m", 3),
}
AUXILIARIES = {
    "future": Auxiliary("be going to", "ir", "a"),
    "can": Auxiliary("can", "poder", ""),
    "must": Auxiliary("must", "deber", ""),
    "want": Auxiliary("want to", "querer", ""),
    "have": Auxiliary("have to", "tener", "que"),
}
CLITICS = ("me", "le", "nos", "les")
DEGREES = {"very": "muy", "quite": "bastante", "too": "demasiado", "so": "tan"}
# Spanish has the noun and its gender: "tener hambre".
FEELINGS = {
    "hungry": ("hambre", "f"),
    "thirsty": ("sed", "f"),
    "sleepy": ("sueño", "m"),
    "afraid": ("miedo", "m"),
}
CONJUNCTIONS = {"and": "y", "but": "pero", "because": "porque"}
# english|spanish|classes
_PREPOSITIONS = """
in|en|location
on|sobre|furniture
under|debajo de|furniture
near|cerca de|location landmark
far from|lejos de|location landmark
behind|detrás de|building landmark
in front of|delante de|building
next to|al lado de|building landmark
"""
TIMES = {
    "past": {
        "yesterday": "ayer",
        "last night": "anoche",
        "last week": "la semana pasada",
        "last year": "el año pasado",
        "this morning": "esta mañana",
    },
    "present": {
        "every day": "todos los días",
        "every night": "todas las noches",
        "every week": "todas las semanas",
        "in the afternoon": "por la tarde",
        "at night": "por la noche",
    },
    "future": {
        "tomorrow": "mañana",
        "next week": "la próxima semana",
        "next year": "el próximo año",
        "tonight": "esta noche",
        "soon": "pronto",
    },
    "state": {"today": "hoy", "now": "ahora"},
}
FREQUENCIES = {
    "always": "siempre",
    "never": "nunca",
    "often": "a menudo",
    "sometimes": "a veces",
    "also": "también",
}
MANNERS = {
    "slowly": "lentamente",
    "quickly": "rápidamente",
    "carefully": "con cuidado",
}
MANNER_VERBS = frozenset(
    "eat cook drink read write open close clean paint draw work".split()
)
AGREEMENTS = ("m", "f", "mp", "fp")


def kinds(names: Any) -> Any:
    """Returns the classes in a string of names of classes and groups."""
    return frozenset(
        " ".join(_GROUPS.get(name, name) for name in names.split()).split()
    )


def _rows(table):
    return [row.split("|") for row in table.strip().splitlines()]


NOUNS = {
    english.rstrip("*"): Noun(spanish, gender, kind, english.endswith("*"))
    for kind, entries in _NOUNS.items()
    for english, spanish, gender in (
        entry.split("|") for entry in entries.split()
    )
}
ADJECTIVES: dict[str, Adjective] = {
    english: Adjective(
        spanish, copula, "g" in flags, "a" in flags, kinds(names)
    )
    for english, spanish, copula, flags, names in _rows(_ADJECTIVES)
}
VERBS: dict[str, Verb] = {
    english: Verb(*forms, kinds(subjects), kinds(objects))
    for english, *forms, subjects, objects in _rows(_VERBS)
}
DETERMINERS: dict[str, Determiner] = {
    english: Determiner(
        dict(zip(AGREEMENTS, forms, strict=True)), bool(definite)
    )
    for english, *forms, definite in _rows(_DETERMINERS)
}
PREPOSITIONS: dict[str, Preposition] = {
    english: Preposition(spanish, kinds(names))
    for english, spanish, names in _rows(_PREPOSITIONS)
}
