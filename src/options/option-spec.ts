/** One option of a command: the single text behind `--help`, the documentation and the messages. */
export type OptionSpec = StringOption | IntegerOption | FlagOption | ChoiceOption | ListOption;

interface Described {
  /** Meaning, unit, and what too much and too little cost. Sentences. */
  readonly help: string;
  /** Word in the help for the value: `--out DIR`. */
  readonly value?: string;
}

export interface StringOption extends Described {
  readonly kind: 'string';
  readonly default?: string;
}

export interface IntegerOption extends Described {
  readonly kind: 'integer';
  readonly default?: number;
  /** Inclusive bounds. */
  readonly min?: number;
  readonly max?: number;
}

/** Present or absent; `--no-NAME` switches off one that is on by default or by configuration. */
export interface FlagOption extends Described {
  readonly kind: 'flag';
  readonly default?: boolean;
}

export interface ChoiceOption extends Described {
  readonly kind: 'choice';
  readonly choices: readonly string[];
  readonly default?: string;
}

/** May be given several times. From the environment: separated by commas. */
export interface ListOption extends Described {
  readonly kind: 'list';
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

/** The resolved values of a table of options, by option name. */
export type OptionValues<Table extends OptionTable> = { readonly [Name in keyof Table]: ValueOf<Table[Name]> };

/** Name of the environment variable of an option: `--max-k` is TRAWL_MAX_K. */
export function environmentName(option: string): string {
  return `TRAWL_${option.replaceAll('-', '_').toUpperCase()}`;
}

/** Own names only: `--constructor` is no option. */
export function optionOf(table: OptionTable, name: string): OptionSpec | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
