"""Certificates: proven bounds on the values of policies and games, which other programs can check."""

from spiel_cfr.certificates.certificate import Certificate, certify
from spiel_cfr.certificates.fixed_point import Interval

__all__ = ["Certificate", "Interval", "certify"]
