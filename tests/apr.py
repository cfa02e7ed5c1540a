"""Computes annual percentage rates independently of the product, with Python's decimal arithmetic.

Reads lines of JSON from the standard input, and prints one rate in percent for each:

  {"advance": "5000.00", "date": "1978-01-10", "unit": "month", "first": "1978-02-10",
   "payments": ["230.00", ...], "advances": [["1978-03-15", "1000.00"], ...]}

`unit` is week, two-weeks, four-weeks, half-month, month, two-months, quarter or year. Payments are one unit apart.
`advances`, which may be absent, are further ones after the first.
The method is the actuarial one of 12 CFR part 1026, appendix J.
"""

import calendar
import json
import sys
from datetime import date, timedelta
from decimal import Decimal, getcontext

getcontext().prec = 30

# Unit-periods of a year, days of a unit that is counted in days, months of a unit that is counted in months.
UNITS = {
    "week": (Decimal(52), 7, None),
    "two-weeks": (Decimal(26), 14, None),
    "four-weeks": (Decimal(13), 28, None),
    "half-month": (Decimal(24), None, None),
    "month": (Decimal(12), None, 1),
    "two-months": (Decimal(6), None, 2),
    "quarter": (Decimal(4), None, 3),
    "year": (Decimal(1), None, 12),
}


def months_back(day, months):
    """The day that lies whole months before; last days stay last days."""
    index = day.year * 12 + day.month - 1 - months
    year, month = divmod(index, 12)
    length = calendar.monthrange(year, month + 1)[1]
    was_last = day.day == calendar.monthrange(day.year, day.month)[1]
    return date(year, month + 1, length if was_last else min(day.day, length))


def whole_months(start, end):
    """Number of whole months measured back from the end, and the day on which they begin."""
    months = 0
    while months_back(end, months + 1) >= start:
        months += 1
    return months, months_back(end, months)


def position(unit, start, end):
    """Whole unit-periods and the fraction of one between two dates."""
    _, days, months = UNITS[unit]
    if days:
        whole, rest = divmod((end - start).days, days)
        return whole, Decimal(rest) / days
    count, begins = whole_months(start, end)
    odd = (begins - start).days
    if unit == "month":
        return count, Decimal(odd) / 30
    if unit == "year":
        if odd == 0:
            return count // 12, Decimal(count % 12) / 12
        years = count // 12
        index = end.year - years
        length = calendar.monthrange(index, end.month)[1]
        return years, Decimal((date(index, end.month, min(end.day, length)) - start).days) / 365
    per_unit = 15 if unit == "half-month" else 30 * months
    whole, rest = divmod(count * 30 + odd, per_unit)
    return whole, Decimal(rest) / per_unit


def rate(loan):
    """Bisects the rate of a unit-period, with one term for each payment."""
    unit = loan["unit"]
    whole, fraction = position(unit, date.fromisoformat(loan["date"]), date.fromisoformat(loan["first"]))
    advance = Decimal(loan["advance"])
    payments = [Decimal(text) for text in loan["payments"]]

    further = [
        (position(unit, date.fromisoformat(loan["date"]), date.fromisoformat(on)), Decimal(amount))
        for on, amount in loan.get("advances", [])
    ]

    def value(of_unit):
        """Value of the payments less that of the further advances."""
        factor = 1 / (1 + of_unit)
        discount = factor**whole / (1 + fraction * of_unit)
        total = Decimal(0)
        for payment in payments:
            total += payment * discount
            discount *= factor
        for (periods, odd), amount in further:
            total -= amount * factor**periods / (1 + odd * of_unit)
        return total

    low, high = Decimal(0), Decimal(1)
    for _ in range(50):
        middle = (low + high) / 2
        if value(middle) > advance:
            low = middle
        else:
            high = middle
    return low * UNITS[unit][0] * 100


for line in sys.stdin:
    print(f"{rate(json.loads(line)):.10f}")
