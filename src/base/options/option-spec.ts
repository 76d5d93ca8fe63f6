/** One option of a command. The parser, its messages, `--help` and the documentation are derived from it. */
export type OptionSpec = StringOption | IntegerOption | FlagOption | ChoiceOption | ListOption;

interface Described {
  /** Sentences with the meaning, the unit, and the effects of too high and too low a value. */
  readonly help: string;
  /** Placeholder for the value in the help: DIR in `--out DIR`. */
  readonly value?: string;
}

interface StringOption extends Described {
  readonly type: 'string';
  readonly default?: string;
}

interface IntegerOption extends Described {
  readonly type: 'integer';
  readonly default?: number;
  /** Inclusive bounds. */
  readonly min?: number;
  readonly max?: number;
}

/** An option without a value. `--no-NAME` switches off a flag that is on by default or by configuration. */
interface FlagOption extends Described {
  readonly type: 'flag';
  readonly default?: boolean;
}

interface ChoiceOption extends Described {
  readonly type: 'choice';
  readonly choices: readonly string[];
  readonly default?: string;
}

/** May be repeated. In an environment variable the values are separated by commas. */
interface ListOption extends Described {
  readonly type: 'list';
}

export type OptionTable = Readonly<Record<string, OptionSpec>>;

type ValueOf<Spec extends OptionSpec> = Spec extends FlagOption
  ? boolean
  : Spec extends ListOption
    ? readonly string[]
    : Spec extends IntegerOption
      ? Spec extends { readonly default: number }
        ? number
        : number | undefined
      : Spec extends ChoiceOption
        ? Spec extends { readonly default: string }
          ? Spec['choices'][number]
          : Spec['choices'][number] | undefined
        : Spec extends { readonly default: string }
          ? string
          : string | undefined;

/** Resolved option values by name. */
export type OptionValues<Table extends OptionTable> = { readonly [Name in keyof Table]: ValueOf<Table[Name]> };

/** The environment variable of an option: TRAWL_MAX_K for `max-k`. */
export function environmentName(option: string): string {
  return `TRAWL_${option.replaceAll('-', '_').toUpperCase()}`;
}

/** The option with this name; undefined if there is none. Reads own properties only: `--constructor` is not an option. */
export function optionOf(table: OptionTable, name: string): OptionSpec | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
