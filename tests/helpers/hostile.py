"""Objects that do something while an argument is read."""


class Index:
    """Can be an index; calls a function each time before it says the next number.

    The last of the numbers is said again and again.
    """

    def __init__(self, *numbers, before=lambda: None):
        self.numbers = list(numbers)
        self.before = before
        self.asked = 0

    def __index__(self):
        self.asked += 1
        self.before()
        return self.numbers.pop(0) if len(self.numbers) > 1 else self.numbers[0]
