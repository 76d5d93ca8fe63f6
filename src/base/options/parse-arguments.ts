import { parseArgs } from 'node:util';
import { usageError } from '../errors.ts';
import { suggestOption } from './closest.ts';
import { type OptionTable, optionOf } from './option-spec.ts';

interface ParsedArguments {
  /** The values of each given option, in order; 'true' or 'false' for a flag. */
  readonly flags: ReadonlyMap<string, readonly string[]>;
  readonly positionals: readonly string[];
}

/**
 * Splits a command line into options (`--name value`, `--name=value`, `--flag`, `--no-flag`) and positional arguments.
 * Everything after `--` is positional.
 *
 * @throws TrawlError USAGE.
 */
export function parseArguments(table: OptionTable, argv: readonly string[], command: string): ParsedArguments {
  const names = namesOf(table);
  const { tokens, positionals } = parseArgs({
    args: [...argv],
    options: Object.fromEntries(
      Array.from(names, ([name, { isFlag }]) => [name, { type: isFlag ? 'boolean' : 'string' }]),
    ),
    allowPositionals: true,
    // Unknown options and missing values are reported below, with what was probably meant.
    strict: false,
    tokens: true,
  });
  const flags = new Map<string, string[]>();
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    const { name, rawName, value, inlineValue } = token;
    if (!rawName.startsWith('--')) {
      throw usageError(
        `Unknown option ${argv[token.index]}. Options begin with two dashes (see \`trawl ${command} --help\`); an argument that ` +
          'begins with a dash goes after --.',
      );
    }
    const known = names.get(name);
    if (known === undefined) {
      // Of --=x the name has the value too.
      const unknown = name.replace(/=.*$/s, '');
      const near = suggestOption(unknown, [...names.keys()]);
      throw usageError(
        `Unknown option --${unknown}${near === undefined ? '.' : `; did you mean --${near}?`} See \`trawl ${command} --help\`.`,
      );
    }
    if (known.isFlag && value !== undefined) {
      throw usageError(`--${name} takes no value; --no-${name} switches it off.`);
    }
    if (!known.isFlag && value === undefined) throw usageError(`--${name} needs a value.`);
    // In `--out --json`, the user probably forgot the folder.
    if (inlineValue === false && value.startsWith('--')) {
      throw usageError(
        `--${name} needs a value, but ${value} follows. Write a value that begins with dashes as --${name}=${value}.`,
      );
    }
    flags.set(known.option, [...(flags.get(known.option) ?? []), value ?? String(known.option === name)]);
  }
  return { flags, positionals };
}

/** Every name that may follow `--`, negated flags included, with the option that it sets. */
function namesOf(table: OptionTable): Map<string, { readonly option: string; readonly isFlag: boolean }> {
  const names = Object.entries(table).map(
    ([option, { type }]) => [option, { option, isFlag: type === 'flag' }] as const,
  );
  const negated = names.filter(([name, { isFlag }]) => isFlag && optionOf(table, `no-${name}`) === undefined);
  return new Map([...names, ...negated.map(([name, known]) => [`no-${name}`, known] as const)]);
}
