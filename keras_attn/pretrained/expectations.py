"""What a model has to be like, to have a form that is published."""


def expect(family, model, **wanted):
    """Refuses a model that differs from what its family always is.

    Args:
        family: str. What the family is called.
        model: the model.
        **wanted: its attributes, and the values that they must have.

    Raises:
        ValueError: another value.
    """
    for name, value in wanted.items():
        found = getattr(model, name)
        if found != value:
            raise ValueError(
                f"A {family} model must have {name}={value!r}. "
                f"Received: {name}={found!r}"
            )
