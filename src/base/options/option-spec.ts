import { TrawlError } from '../errors.ts';

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

/**
 * Converts the strings of a command line or an environment variable to the option's value.
 *
 * @throws TrawlError `code` with `where` (the option or variable), its value, and the expected values.
 */
export function optionValue(
  spec: OptionSpec,
  texts: readonly string[],
  code: 'USAGE' | 'CONFIG_INVALID',
  where: string,
): unknown {
  if (spec.type === 'list') return Object.freeze([...texts]);
  const text = texts.at(-1)!;
  const refuse = (expected: string): TrawlError =>
    new TrawlError(code, `${where} is ${JSON.stringify(text)}; expected ${expected}.`);
  switch (spec.type) {
    case 'string':
      return text;
    case 'flag':
      if (/^(1|true|yes|on)$/i.test(text)) return true;
      if (/^(0|false|no|off)$/i.test(text)) return false;
      throw refuse('true or false');
    case 'choice':
      if (spec.choices.includes(text)) return text;
      throw refuse(`one of ${spec.choices.join(', ')}`);
    case 'integer': {
      const { min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER } = spec;
      const value = /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
      if (value >= min && value <= max) return value;
      throw refuse(wholeNumber(spec));
    }
    default:
      throw new TypeError(`unknown option type: ${spec satisfies never}`);
  }
}

function wholeNumber({ min, max }: { readonly min?: number; readonly max?: number }): string {
  if (min !== undefined && max !== undefined) return `a whole number from ${min} to ${max}`;
  if (min !== undefined) return `a whole number of at least ${min}`;
  return max === undefined ? 'a whole number' : `a whole number of at most ${max}`;
}
