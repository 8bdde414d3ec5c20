"""Tables with known rules, and the linear models that they are compared with."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def houses(path: Path, rows: int = 800) -> None:
    """Prices by area, rooms, city, year and balcony, with missing values, an id and a constant column."""
    rng = np.random.default_rng(1)
    area, room_counts = rng.normal(100, 30, rows).clip(20), rng.integers(1, 7, rows)
    city, built = rng.choice(["Köln", "Bonn", "Ulm"], rows, p=[0.5, 0.3, 0.2]), rng.integers(1950, 2020, rows)
    balcony = rng.random(rows) < 0.4
    price = area * 2500 + room_counts * 8000 + (built - 1950) * 900 + balcony * 15000 + rng.normal(0, 9000, rows)
    price += np.select([city == "Köln", city == "Bonn"], [60000, 20000], -40000)
    lines = ['Id,"area (m2)",rooms,city,built,balcony,country,price']
    for i in range(rows):
        cells = [f"{area[i]:.1f}", str(room_counts[i]), city[i], str(built[i]), str(bool(balcony[i])).lower(), "DE"]
        cells.append(f"{price[i]:.0f}")
        for column, share, text in ((0, 0.1, ""), (2, 0.05, ""), (3, 0.08, "NA"), (6, 0.02, "")):
            if rng.random() < share:
                cells[column] = text
        lines.append(",".join([str(i + 1), *cells]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def flowers(path: Path, rows: int = 300) -> None:
    """Three kinds by four sizes, with names as labels; the kinds overlap."""
    rng = np.random.default_rng(2)
    middles = {
        "Iris setosa": (5.0, 3.4, 1.5, 0.2),
        "Iris versicolor": (5.9, 2.8, 4.3, 1.3),
        "Iris virginica": (6.6, 3.0, 5.6, 2.0),
    }
    kinds = rng.choice(list(middles), rows)
    lines = ["sepal length\tsepal width\tpetal length\tpetal width\tspecies"]
    for kind in kinds:
        sizes = rng.normal(middles[kind], 0.45)
        cells = ["" if rng.random() < 0.03 else f"{size:.2f}" for size in sizes]
        lines.append("\t".join([*cells, kind]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def passengers(path: Path, rows: int = 900) -> None:
    """Who survived (0 or 1), by class, sex, age and port, with missing values."""
    rng = np.random.default_rng(3)
    levels, sex = rng.integers(1, 4, rows), rng.choice(["female", "male"], rows)
    age, port = rng.gamma(4, 8, rows), rng.choice(["S", "C", "Q"], rows)
    score = 2.5 * (sex == "female") - 0.9 * (levels - 2) - 0.03 * (age - 30) + 0.4 * (port == "C") - 1.2
    survived = rng.random(rows) < 1 / (1 + np.exp(-score))
    lines = ["Survived,Pclass,Sex,Age,Embarked"]
    for i in range(rows):
        years = "" if rng.random() < 0.2 else f"{age[i]:.0f}"
        harbour = "" if rng.random() < 0.01 else port[i]
        lines.append(f"{int(survived[i])},{levels[i]},{sex[i]},{years},{harbour}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def design(rows: list[dict[str, str]], target: str, training: np.ndarray, left_out: tuple[str, ...] = ()) -> np.ndarray:
    """Return the matrix of a linear model: scaled numbers, indicators, one-hot categories, a column of ones."""
    columns = []
    for name in rows[0]:
        if name == target or name in left_out:
            continue
        cells = [row[name] for row in rows]
        try:
            numbers = np.array(
                [np.nan if cell in ("", "NA") else float({"true": 1, "false": 0}.get(cell, cell)) for cell in cells]
            )
        except ValueError:
            columns += [[cell == value for cell in cells] for value in sorted(set(cells))]
            continue
        absent = np.isnan(numbers)
        numbers = np.where(absent, np.nanmean(numbers[training]), numbers)
        columns += [(numbers - numbers[training].mean()) / (numbers[training].std() or 1), absent]
    return np.stack([*columns, np.ones(len(rows))], axis=1).astype(float)


def least_squares(x: np.ndarray, y: np.ndarray, training: np.ndarray) -> np.ndarray:
    """Return the predictions of ridge regression."""
    a = x[training]
    return x @ np.linalg.solve(a.T @ a + 1e-3 * np.eye(x.shape[1]), a.T @ y[training])


def logistic(x: np.ndarray, classes: np.ndarray, training: np.ndarray, count: int) -> np.ndarray:
    """Return the classes that multinomial logistic regression predicts."""
    weights, wanted = np.zeros((x.shape[1], count)), np.eye(count)[classes]
    for _ in range(3000):
        scores = x[training] @ weights
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        weights -= 0.3 * (x[training].T @ (shares - wanted[training]) / training.sum() + 1e-4 * weights)
    return (x @ weights).argmax(axis=1)
