"""Spanish words, written by hand."""

_PLURALS = """ratón ratones reloj relojes tren trenes avión aviones ciudad
ciudades jardín jardines árbol árboles rey reyes pastel pasteles mujer mujeres
actriz actrices autobús autobuses paraguas paraguas sofá sofás gato gatos hotel
hoteles estación estaciones""".split()
PLURALS = dict(zip(_PLURALS[::2], _PLURALS[1::2], strict=True))
