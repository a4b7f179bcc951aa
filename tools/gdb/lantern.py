# Values of Rep in gdb:  (gdb) source lantern.py
#
#   (gdb) print y
#   $1 = 6 (reverse mode, adjoint 2.5)
#
# A Rep that is computed eagerly shows its number, an array or a tensor its first elements and its shape, a value
# under derivative handlers its primal and what the handlers know of it; one that is staged shows its name in the
# graph. Nothing is called in the program, so that variables without a value yet do no harm.
import gdb
import gdb.printing

EMPTY, LITERAL, NODE, BOXED = range(4)
BOOLEAN, I32, I64, F32, F64, TENSOR = range(6)
KINDS = ["bool", "i32", "i64", "f32", "f64"]
ELEMENTS = {BOOLEAN: "bool", I32: "int", I64: "long", F32: "float", F64: "double"}
BOX_TENSOR, BOX_TREE, BOX_TAGGED = range(3)
SHOWN = 8


def number(kind, value):
    if kind == BOOLEAN:
        return "true" if int(value) else "false"
    return "%.15g" % float(value) if kind in (F32, F64) else str(int(value))


def read(address, type_name):
    return gdb.Value(int(address)).cast(gdb.lookup_type(type_name).pointer()).dereference()


def pointer(address):
    return int(read(address, "long"))


class Layout:
    """Where the parts of boxes lie: compiler/staging/datum.hpp and mode.hpp, compiler/ad/reverse.hpp and forward.hpp."""

    def __init__(self, datum_type):
        self.datum_type = datum_type
        self.box = 16                                    # virtual table, kind, references
        self.primal = self.box + 8                       # after the pointer to the mode
        self.after_primal = self.primal + datum_type.sizeof

    def datum(self, address):
        return gdb.Value(int(address)).cast(self.datum_type.pointer()).dereference()


def class_of(box):
    """The class of a box by its virtual table: 'lantern::core::ad::Variable'."""
    text = gdb.execute("info symbol %d" % pointer(box), to_string=True)
    start = text.find("vtable for ")
    return text[start + 11:].split(" + ")[0].split(" in section")[0] if start >= 0 else ""


def tensor(box, kind):
    begin, end, data = pointer(box + 16), pointer(box + 24), pointer(box + 40)
    shape = [int(read(begin + 8 * i, "long")) for i in range((end - begin) // 8)]
    count = 1
    for n in shape:
        count *= n
    size = gdb.lookup_type(ELEMENTS[kind]).sizeof
    shown = [number(kind, read(data + size * i, ELEMENTS[kind])) for i in range(min(count, SHOWN))]
    if count > SHOWN:
        shown.append("...")
    return "[%s] (%s[%s])" % (", ".join(shown), KINDS[kind], ",".join(map(str, shape)))


def tagged(box, layout, depth):
    primal = text(layout.datum(box + layout.primal), depth + 1)
    name = class_of(box)
    if name in ("lantern::core::ad::Variable", "lantern::core::ad::Result"):
        # A cell: virtual table, the adjoint so far.
        cell = pointer(box + layout.after_primal)
        adjoint = layout.datum(cell + 8)
        known = int(adjoint["state_"]) != EMPTY and class_of(cell).endswith(("OwnCell", "Result"))
        return "%s (reverse mode%s)" % (primal, ", adjoint " + text(adjoint, depth + 1) if known else "")
    if name == "lantern::core::ad::Dual":
        return "%s (forward mode, tangent %s)" % (primal, text(layout.datum(box + layout.after_primal), depth + 1))
    return "%s (under a derivative)" % primal


def text(datum, depth=0):
    state, kind = int(datum["state_"]), int(datum["type_"]["kind_"])
    bits = datum["bits_"]
    if state == EMPTY:
        return "no value yet"
    if state == LITERAL and kind <= F64:
        return number(kind, bits["f"] if kind in (F32, F64) else bits["i"])
    if state == NODE:
        name = bits["node"]["name"]
        return "staged" + (" %" + name.string() if int(name) else "")
    if state != BOXED or depth > 8:
        return "no value yet"
    box = int(bits["box"])
    what = int(read(box + 8, "unsigned char"))
    if what == BOX_TENSOR:
        return tensor(box, int(read(int(datum["type_"]["data_"]), "unsigned char")))
    if what == BOX_TREE:
        return "a tree"
    return tagged(box, Layout(datum.type.strip_typedefs().unqualified()), depth)


class RepPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        try:
            return text(self.value["storage_"]["datum_"])
        except gdb.MemoryError:
            return "no value yet"


class DatumPrinter:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        try:
            return text(self.value)
        except gdb.MemoryError:
            return "no value yet"


def printers():
    collection = gdb.printing.RegexpCollectionPrettyPrinter("lantern")
    collection.add_printer("Rep", "^lantern::core::Rep<.*>$", RepPrinter)
    collection.add_printer("Datum", "^lantern::core::Datum$", DatumPrinter)
    return collection


gdb.printing.register_pretty_printer(None, printers(), replace=True)
