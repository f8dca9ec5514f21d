"""Networks where tables end: CFR whose advantages are learned, on compiled games and on states."""
