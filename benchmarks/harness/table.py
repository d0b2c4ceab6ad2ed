"""Markdown tables of a report."""


def markdown(result):
    """Returns the Markdown of a report.

    Args:
        result: dict, from `report.complete`.

    Returns:
        str, with a heading per case.
    """
    peaks, versions = result["machine"]["matrix_gflops"], result["versions"]
    lines = [
        "<!-- Written by `python -m benchmarks`; do not edit. -->",
        "",
        f"## {result['title']}",
        "",
        f"`{result['command']}` on {result['date']}: "
        + f"{machine(result['machine'])}; "
        + ", ".join(f"{k} {v}" for k, v in versions.items() if v)
        + ".",
    ]
    if result["quick"]:
        lines += ["", "**Quick run on tiny sizes: the numbers mean nothing.**"]
    for title, entries in tables(result["results"]):
        lines += ["", f"### {title}", ""]
        if "column" in entries[0]["case"]:
            lines += _grid(entries)
        else:
            lines += _rows(entries[0]["contestants"])
    lines += [""]
    for note in result["notes"]:
        lines += [f"- {note}"]
    on_gpu = "gpu" in result["machine"]
    shares = on_gpu or any(
        "column" not in one["case"] for one in result["results"]
    )
    if shares and peaks:
        rates = ", ".join(f"{name} {rate:,.0f}" for name, rate in peaks.items())
        lines += [
            "- *Of peak*: floating-point operations per second in the step's "
            "matrix products, counted by formula, relative to products of "
            + (
                "large matrices with the same backend and dtype on this GPU "
                if on_gpu
                else "2,048 x 2,048 float32 matrices with the same backend on "
                "this machine "
            )
            + f"(GFLOP/s: {rates})."
        ]
    lines += _settings(result["environment"])
    return "\n".join(lines) + "\n"


def machine(facts):
    """Returns the name of a machine.

    Args:
        facts: dict, the `machine` of a report.

    Returns:
        str: processor, cores and system, and first the GPU if it was used.
    """
    name = f"{facts['cpu']}, {facts['cores']} cores, {facts['system']}"
    if "gpu" not in facts:
        return name
    return f"{facts['gpu']}, driver {facts['driver']}; {name}"


def _settings(environment):
    """Lists the environment variables, for all backends or each."""
    backends = {}
    for backend, settings in environment.items():
        text = ", ".join(f"`{k}={v}`" for k, v in settings.items())
        backends.setdefault(text, []).append(backend)
    if len(backends) == 1:
        return [
            f"- Environment variables: {text}." for text in backends if text
        ]
    return [
        f"- Environment variables on {' and '.join(names)}: {text or 'none'}."
        for text, names in backends.items()
    ]


def tables(results):
    """Groups cases by their title: one table per title.

    Args:
        results: list, the `results` of a report.

    Returns:
        Pairs (title, list of results), in the order of `results`.
    """
    tables = {}
    for entry in results:
        tables.setdefault(entry["case"]["title"], []).append(entry)
    return tables.items()


def _grid(entries):
    """One row per contestant, one column per case."""
    columns = [entry["case"]["column"] for entry in entries]
    rows = [
        f"| | {' | '.join(columns)} |",
        f"| --- |{' ---: |' * len(columns)}",
    ]
    found = [
        {one["name"]: _cell(one) for one in entry["contestants"]}
        for entry in entries
    ]
    for name in dict.fromkeys(name for cells in found for name in cells):
        cells = [column.get(name, "") for column in found]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return rows


def _cell(entry):
    took = 1000 * entry["median_seconds"]
    # Steps on a GPU can take less than a millisecond.
    digits = 0 if took >= 100 else 1 + (took < 10 and "tflops" in entry)
    parts = [f"{took:,.{digits}f} ms"]
    if "tflops" in entry:
        parts.append(f"{entry['tflops']:,.0f} TFLOP/s")
        if "share_of_peak" in entry:
            parts[-1] += f" ({entry['share_of_peak']:.0%})"
    if entry["peak_mib"] is not None:
        parts.append(f"{entry['peak_mib'] - entry['base_mib']:,.0f} MiB")
    text = ", ".join(parts)
    return f"**{entry['ratio']:.2f}** {text}" if "ratio" in entry else text


def _rows(contestants):
    reads = any("host_reads" in entry for entry in contestants)
    rows = [
        "| | backend | ms per step | tokens/s | of peak | first step, s | "
        "peak MiB |" + " host reads |" * reads + " times as fast as |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
        + " ---: |" * reads
        + " --- |",
    ]
    for entry in contestants:
        share = entry.get("share_of_peak")
        # Steps on a GPU can take few milliseconds.
        took = 1000 * entry["median_seconds"]
        digits = 1 if took < 100 and "tflops" in entry else 0
        peak = entry["peak_mib"]
        ratio = ""
        if "ratio" in entry:
            ratio = f"**{entry['ratio']:.2f}** {entry['against']}"
        rows.append(
            f"| {entry['name']} | {entry['backend']} "
            f"| {took:,.{digits}f} "
            f"| {entry['tokens_per_second']:,.0f} "
            f"| {'' if share is None else format(share, '.0%')} "
            f"| {entry['first_seconds']:.1f} "
            f"| {'' if peak is None else format(peak, ',.0f')} "
            + (f"| {entry['host_reads']:.0f} " if reads else "")
            + f"| {ratio} |"
        )
    return rows
