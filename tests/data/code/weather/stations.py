"""Weather stations and what they measure."""

import csv
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from math import asin, cos, radians, sin, sqrt
from pathlib import Path

EARTH_RADIUS_KM = 6371.0
COLUMNS = ("station", "time", "temperature", "humidity", "pressure")


@dataclass(frozen=True)
class Station:
    name: str
    latitude: float
    longitude: float
    altitude: int = 0

    def distance_to(self, other: "Station") -> float:
        """Kilometres along the surface of the earth, by the haversine formula."""
        first, second = radians(self.latitude), radians(other.latitude)
        north = second - first
        east = radians(other.longitude - self.longitude)
        root = sin(north / 2) ** 2 + cos(first) * cos(second) * sin(east / 2) ** 2
        return 2 * EARTH_RADIUS_KM * asin(sqrt(root))


@dataclass(frozen=True)
class Reading:
    station: str
    time: datetime
    temperature: float
    humidity: float
    pressure: float

    @property
    def dew_point(self) -> float:
        """Degrees Celsius at which the air is saturated, roughly."""
        return self.temperature - (100 - self.humidity) / 5

    @property
    def is_frosty(self) -> bool:
        return self.temperature < 0 and self.humidity > 80


def read(path: Path) -> Iterator[Reading]:
    """The readings in a CSV file, without rows that are not complete."""
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if any(not row.get(column) for column in COLUMNS):
                continue
            yield Reading(
                station=row["station"],
                time=datetime.fromisoformat(row["time"]).astimezone(timezone.utc),
                temperature=float(row["temperature"]),
                humidity=float(row["humidity"]),
                pressure=float(row["pressure"]),
            )


def write(path: Path, readings: Iterable[Reading]) -> int:
    """Write readings to a CSV file; returns how many."""
    count = 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for count, reading in enumerate(readings, start=1):
            time = reading.time.isoformat(timespec="minutes")
            writer.writerow((reading.station, time, reading.temperature, reading.humidity, reading.pressure))
    return count


def nearest(station: Station, others: Iterable[Station], count: int = 3) -> list[Station]:
    """The nearest stations, the nearest first."""
    found = [other for other in others if other != station]
    return sorted(found, key=station.distance_to)[:count]


def by_day(readings: Iterable[Reading]) -> dict[str, list[Reading]]:
    days: dict[str, list[Reading]] = {}
    for reading in readings:
        days.setdefault(reading.time.strftime("%Y-%m-%d"), []).append(reading)
    return days


def summary(readings: Iterable[Reading]) -> dict[str, dict[str, float]]:
    """The lowest, mean and highest temperature of each day."""
    result = {}
    for day, measured in by_day(readings).items():
        temperatures = [reading.temperature for reading in measured]
        result[day] = {
            "lowest": min(temperatures),
            "mean": round(statistics.fmean(temperatures), 1),
            "highest": max(temperatures),
        }
    return result


def outliers(readings: list[Reading], bound: float = 3.0) -> list[Reading]:
    """Readings whose temperature is further from the mean than `bound` standard deviations."""
    if len(readings) < 2:
        return []
    temperatures = [reading.temperature for reading in readings]
    mean = statistics.fmean(temperatures)
    deviation = statistics.stdev(temperatures)
    if deviation == 0:
        return []
    return [reading for reading in readings if abs(reading.temperature - mean) / deviation > bound]
