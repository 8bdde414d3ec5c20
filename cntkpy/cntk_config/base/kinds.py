"""The kinds of errors and findings: one table with their codes, titles, severities and pages.

`ConfigError("BadInteger", ...)` names its kind and gets the object from the table; kinds that ask for the same repair
share a code. Codes never change their meaning; new ones are added. A kind of a plug-in has its package before a dot,
`myreader.BadLine`, and the code of `OTHER`. Any other name is a mistake, found where the error is made.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

HOME = "https://github.com/cntkpy/cntkpy/blob/main"
"""Address of the files of the newest version: pages are not part of an installation."""
PAGES = {
    9: ("reading", "Reading a configuration"),
    18: ("names", "Names"),
    26: ("values", "Values"),
    39: ("writing", "Slips of the pen"),
    45: ("commands", "Commands and their settings"),
    59: ("networks", "Networks"),
    62: ("data", "Files and data"),
    65: ("networks", "Networks"),
    99: ("running", "Running"),
}
"""The page of a rule and its title, by the greatest number of its codes."""


class Rule(NamedTuple):
    """Kinds of findings that ask for the same repair."""

    code: str
    title: str
    severity: str
    kinds: tuple[str, ...]
    """The `kind`s of diagnostics that this rule stands for."""
    fix: str
    """Advice where the diagnostic itself says nothing better."""
    errors: tuple[str, ...] = ()
    """Kinds that are errors; the others may have any severity."""

    def severity_of(self, kind: str) -> str:
        """Return the severity of one of its kinds."""
        return "error" if kind in self.errors else self.severity

    @property
    def page(self) -> str:
        """Name of the page that documents the rule, in docs/findings."""
        return next(name for last, (name, _) in PAGES.items() if int(self.code[2:]) <= last)

    @property
    def link(self) -> str:
        """Address of the section that documents the rule; `cntkpy help CODE` prints it."""
        return f"{HOME}/docs/findings/{self.page}.md#{self.code.lower()}"


RULES = (
    Rule("CK001", "a configuration file cannot be read", "error",
         ("FileNotFound", "DuplicateConfigFile", "BadDirectory", "BadPath", "RemoteConfiguration"),
         "correct the path"),
    Rule("CK002", "a line is not text", "error", ("MalformedLine",), "save the file as UTF-8 with ordinary line ends"),
    Rule("CK003", "a variable in an include", "error", ("VariableInInclude",), "write the path out"),
    Rule("CK004", "a bracket or quote is never closed", "error", ("UnclosedBracket",), "close it"),
    Rule("CK005", "a bracket is closed by another one", "error", ("MismatchedBracket",), "use the same kind"),
    Rule("CK006", "there is no value after the =", "error", ("MissingValue",), 'write name="" for an empty text'),
    Rule("CK007", "a variable is not defined", "error", ("UnknownVariable", "MissingLayer"), "define it"),
    Rule("CK008", "variables need each other", "error", ("VariableCycle",), "give one of them a value of its own"),
    Rule("CK009", "a text grows too large", "error", ("MultilineVariable", "ExpansionTooLarge", "NestingTooDeep"),
         "write it simpler"),
    Rule("CK010", "a parameter is not known, but another is called nearly so", "warning", ("UnknownParameter",),
         "correct the name"),
    Rule("CK011", "nothing reads a parameter", "hint", ("UnusedParameter", "UnusedMember", "UnusedStream"),
         "remove it, or move it where it belongs"),
    Rule("CK012", "an action is not known", "error", ("UnknownAction",), "use one of `cntkpy list actions`"),
    Rule("CK013", "a reader, deserializer or writer is not known", "error",
         ("UnknownReader", "UnknownDeserializer", "UnknownWriter", "UnknownModule", "ModuleNotImported"),
         "use one of `cntkpy list`"),
    Rule("CK014", "a network builder is not known", "error", ("UnknownBuilder",),
         "use BrainScriptNetworkBuilder, NDLNetworkBuilder or SimpleNetworkBuilder"),
    Rule("CK015", "a required parameter is missing", "error",
         ("MissingParameter", "MissingSection", "MissingPackage"), "add it"),
    Rule("CK016", "a parameter has no effect in cntkpy", "hint", ("IgnoredParameter",), "remove it"),
    Rule("CK017", "CNTK has it, cntkpy does not", "error", ("NotSupported",), "use what the message names instead"),
    Rule("CK018", "nothing reads a word of the command line", "error", ("UnreadWord",),
         "correct the name, or remove the word"),
    Rule("CK020", "a number is expected", "error", ("BadInteger", "IntegerRange", "BadNumber"), "write a number"),
    Rule("CK021", "a truth value is expected", "error", ("BadBoolean",), "write true or false"),
    Rule("CK022", "one of several words is expected", "error", ("BadChoice", "BadPrecision", "BadDevice"),
         "write one of the words"),
    Rule("CK023", "an array is wrong", "error", ("BadRepeat", "EmptyVector"), "write value*count, one value at least"),
    Rule("CK024", "a value is outside its range", "error", ("BadValue", "BadOrder"), "correct the value"),
    Rule("CK025", "an old name", "error", ("DeprecatedKey",), "use the new name"),
    Rule("CK026", "two parameters contradict each other", "error", ("Conflict",), "keep one of them"),
    Rule("CK030", "a file is included twice", "warning", ("RepeatedInclude",), "remove one of the includes"),
    Rule("CK031", "a bracket closes nothing", "warning", ("StrayBracket",), "remove it"),
    Rule("CK032", "a value without a name", "warning", ("EmptyName",), "write name=value"),
    Rule("CK033", "a bracket that belongs to nothing", "warning", ("NamelessGroup",), "give it a name"),
    Rule("CK034", "a whole section is replaced", "warning", ("SectionReplaced",), "use square brackets"),
    Rule("CK035", "half a value after a comma", "error", ("CutOff",), "write a colon, or put the value in quotes"),
    Rule("CK036", "quotation marks of a word processor", "warning", ("CurlyQuotes",), 'write "'),
    Rule("CK037", "a name is set twice", "warning", ("RepeatedParameter",), "remove one of the two"),
    Rule("CK038", "a variable has lost a $", "warning", ("LostDollar", "ShellText"),
         "write $name$"),
    Rule("CK039", "an include without an equals sign", "error", ("BadInclude",), "write include=FILE"),
    Rule("CK040", "more values per epoch than epochs", "hint", ("LongSchedule",), "drop the values after maxEpochs"),
    Rule("CK041", "a variable is taken from further out than it seems", "warning", ("ShadowedVariable", "OuterMember"),
         "give one of the two another name"),
    Rule("CK042", "a test or write builds a new network instead of loading the model", "warning",
         ("InheritedBuilder",), "move the builder into the training command"),
    Rule("CK043", "two network builders", "warning", ("SeveralBuilders",), "keep one of them"),
    Rule("CK044", "a test or write evaluates a network that nothing has trained", "warning", ("UntrainedNetwork",),
         "remove the builder and give modelPath, or train first"),
    Rule("CK045", "a training resumes with other settings than it began with", "warning",
         ("OtherSettings", "OtherRecipe"), "makeMode=false trains again", errors=("OtherRecipe",)),
    Rule("CK050", "a statement of a network description cannot be read", "error",
         ("InvalidStatement", "InvalidMacro", "InvalidName", "ReservedName", "CommandArguments", "UnknownCommand",
          "OneNetworkFile", "TooDeep", "TooLarge", "RecursiveMacro", "BadSyntax", "DuplicateMember",
          "DuplicateParameter", "DuplicateArgument", "TooManyIncludes", "RepeatedNetwork"),
         "see docs/ndl.md, docs/brainscript.md"),
    Rule("CK051", "a network description uses a name that is not defined", "error",
         ("UndefinedNode", "UndefinedFunction", "UnknownSection", "UnknownGroup", "UnknownNode", "UnknownModel",
          "NoDefaultModel", "OtherModel", "BadPattern", "UnknownName", "UnknownMember", "UnknownClass",
          "UnknownOperation"),
         "define it, or correct it"),
    Rule("CK052", "arguments of a function are wrong", "error",
         ("UnknownOption", "FunctionArguments", "MacroArguments", "InvalidArgument", "ConstantExpected", "BadTag",
          "RepeatedArgument", "Unsupported", "UnknownProperty", "DeprecatedReshape", "WrongArguments",
          "UnknownArgument", "BadOperand", "BadCondition", "BadIndex", "NoInteger", "NoArray", "NoFunction",
          "NoRecord", "NoNode", "NoNetwork"), "see `cntkpy help` FUNCTION"),
    Rule("CK053", "shapes of a network do not fit together", "error",
         ("BadShape", "NoAxis", "MixedAxes", "AxisAsOperand"), "change a dimension or a time axis"),
    Rule("CK054", "a network description is not complete or says something twice", "error",
         ("Redefinition", "NoFeatureNode", "NoCriterion", "NoScalar", "NodeExists", "OperationMismatch", "BadCopy",
          "BadLoop", "NoValue", "HiddenParameter", "RenamedInput", "DuplicateName", "CircularReference",
          "TooMany", "Fail"),
         "see docs/ndl.md, docs/brainscript.md"),
    Rule("CK055", "the reader has no stream for an input of the network", "error", ("MissingStream",),
         "give both the same name"),
    Rule("CK056", "dimensions of reader and network differ", "error", ("DimensionMismatch",),
         "write the same dimension in both"),
    Rule("CK057", "an option that a function does not have", "warning", ("IgnoredOption",), "correct the name"),
    Rule("CK058", "the operands of a criterion are exchanged", "warning", ("SwappedOperands",), "put the labels first"),
    Rule("CK059", "what a script does to models is lost", "warning", ("NotSaved",), "add SaveModel(m, file)"),
    Rule("CK060", "an input file does not exist here", "hint", ("MissingFile", "MissingInput"), "correct the path",
         errors=("MissingInput",)),
    Rule("CK061", "the data do not fit their description", "error",
         ("DataMismatch", "DifferentSequences", "BadSequences", "TruncatedAxes"), "correct dim or the data"),
    Rule("CK062", "a path of Windows", "warning", ("WindowsPath",), "write a path of this system"),
    Rule("CK065", "a criterion over one class, or of a second softmax", "warning", ("OneClass", "SecondSoftmax"),
         "use two classes, or Logistic; give the criterion what is before the softmax"),
    Rule("CK070", "a file cannot be read or written", "error",
         ("CannotRead", "CannotWrite", "BadFile", "TooManyFiles", "SameFile", "ModelInUse", "LogInUse"),
         "look at the path, the rights and the space"),
    Rule("CK071", "a model or checkpoint cannot be used", "error", ("NoModel", "BadModel", "BadCheckpoint"),
         "correct modelPath, or restore the file from a copy"),
    Rule("CK072", "the data are damaged, or there are none", "error",
         ("DataError", "BadArchive", "DataEnd", "DifferentLengths", "EmptySequence", "NotFinite", "NoData", "NoSamples",
          "NoPictures", "NoEpochs", "NoRuns", "NoLength", "BadClassLabel", "NotAClass", "NoLabels", "NoPriors"),
         "mend the data, or their description"),
    Rule("CK073", "a stream or a format is not there", "error",
         ("BadStream", "NoStreams", "UnknownFormat"), "use one of those that the message names"),
    Rule("CK074", "training cannot continue", "error",
         ("NotANumber", "NoGradient", "GradientCheck", "NothingToDo", "TruncatedFuture"), "see the message"),
    Rule("CK075", "a device, or another process of the run", "error",
         ("NoSuchDevice", "DeviceChanged", "SharedDevice", "UnequalDevices", "NoCoordinator", "WorkerLost",
          "BadSilence", "OneWorkerOnly", "CannotListen", "OutOfMemory"), "see docs/parallel.md"),
    Rule("CK076", "code of a plug-in or a program", "error", ("UserCode", "ArgumentError"),
         "correct the class or function that the message names"),
    Rule("CK080", "the project file is wrong", "error", ("BadProject",), "see docs/projects.md"),
    Rule("CK081", "a value breaks a contract of the project", "error", ("BrokenContract", "ModuleNotAllowed"),
         "correct the value, or the contract"),
    Rule("CK082", "a part of the project file has no effect", "hint", ("UnmatchedGlob", "UnusedContract"),
         "correct it, or remove it"),
    Rule("CK099", "a plug-in has found something", "error", (), "see the message"),
)  # fmt: skip
"""Every rule. Its section of docs/findings/ has a bad and a good example, where `check` can find it."""

OTHER = RULES[-1]
"""The rule of the kinds of plug-ins, whose names have a dot."""


class Kind(str):
    """A kind of error or finding: its name, which it equals, and the rule with its code, title, severity and page."""

    __slots__ = ("rule",)
    rule: Rule

    def __new__(cls, name: str, rule: Rule) -> Self:
        """Return a name with its rule."""
        kind = super().__new__(cls, name)
        kind.rule = rule
        return kind

    def __reduce__(self) -> tuple[Any, ...]:
        return kind_of, (str(self),)

    @property
    def code(self) -> str:
        """The code that `check` shows and that `--ignore` takes."""
        return self.rule.code

    @property
    def severity(self) -> str:
        """`error`, `warning` or `hint`."""
        return self.rule.severity_of(self)

    @property
    def page(self) -> str:
        """Page that documents the kind."""
        return self.rule.link


KINDS = {name: Kind(name, rule) for rule in RULES for name in rule.kinds}
"""Every kind by its name."""


def kind_of(name: str) -> Kind:
    """Return the kind of that name.

    Args:
        name: a name of the table, or `package.Name`, which is a kind of a plug-in and has the rule `OTHER`.

    Returns:
        The object of the table, or a new one.

    Raises:
        ValueError: the name is neither.
    """
    kind = KINDS.get(name)
    if kind is not None:
        return kind
    package, _, suffix = name.rpartition(".")
    if not (package and suffix.isidentifier() and all(word.isidentifier() for word in package.split("."))):
        import difflib  # late: texts without mistakes need none of it

        near = difflib.get_close_matches(name, KINDS, n=1)
        advice = (
            f"did you mean '{near[0]}'?" if near else f"a kind of your own has a dot: 'mypackage.{suffix or 'BadLine'}'"
        )
        raise ValueError(f"'{name}' is not a kind of error; {advice}")
    return Kind(name, OTHER)


def rule_of(name: str) -> Rule:
    """Return the rule for a kind of diagnostic."""
    return kind_of(name).rule


def find_rule(code: str) -> Rule | None:
    """Return the rule with a code."""
    return next((rule for rule in RULES if rule.code == code.upper()), None)
