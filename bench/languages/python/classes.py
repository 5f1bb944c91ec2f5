"""Methods, properties, comprehensions, generators and functions that C code calls."""

from truth import repeat


class Shape:
    def __init__(self, width):
        self.width = width

    def area(self):
        return self.width * self.width

    @property
    def double(self):
        return self.area() * 2


class Square(Shape):
    def area(self):
        return super().area() + 1


SHAPES = [Square(i) if i % 2 else Shape(i) for i in range(2000)]


def methods_part():
    return sum(shape.double for shape in SHAPES)


def comprehension_part():
    return len([x * y for x in range(120) for y in range(60) if (x + y) % 3])


def numbers(n):
    for i in range(n):
        yield i * 3


def pairs(n):
    for x in numbers(n):
        yield x, x + 1


def generator_part():
    return sum(a + b for a, b in pairs(4000))


def sort_part():
    return sorted(range(4000), key=lambda v: (v * 7919) % 4001)


repeat(methods_part, comprehension_part, generator_part, sort_part).write()
