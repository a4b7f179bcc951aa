"""The list of a wheel's files is right: names, hashes and sizes of all of them; what it requires is as expected.

    python3 check_wheel.py WHEEL REQUIREMENT   (empty for none)
"""
import base64
import csv
import hashlib
import sys
import zipfile

from checks import check

with zipfile.ZipFile(sys.argv[1]) as wheel:
    check(wheel.testzip() is None)
    members = {name: wheel.read(name) for name in wheel.namelist()}
(record,) = [name for name in members if name.endswith(".dist-info/RECORD")]
listed = {row[0]: row[1:] for row in csv.reader(members[record].decode().splitlines())}
check(listed.keys() == members.keys(), str(listed.keys()))
check(listed.pop(record) == ["", ""])
for name, (digest, size) in listed.items():
    expected = base64.urlsafe_b64encode(hashlib.sha256(members[name]).digest()).rstrip(b"=").decode()
    check(digest == "sha256=" + expected and int(size) == len(members[name]), name)
metadata = members[record.replace("RECORD", "METADATA")].decode().splitlines()
requirements = [line.split(": ")[1] for line in metadata if line.startswith("Requires-Dist: ")]
check(requirements == ([sys.argv[2]] if sys.argv[2] else []), str(requirements))
