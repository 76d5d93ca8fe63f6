import { TrawlError } from '../errors.ts';
import { closestTo } from './closest.ts';
import { type OptionTable, optionOf } from './option-spec.ts';

export interface ParsedArguments {
  /** Texts of each option that is there, in order; a switch is `true` or `false`. */
  readonly flags: ReadonlyMap<string, readonly string[]>;
  readonly positionals: readonly string[];
}

/**
 * Splits a command line by a table of options. `--name value`, `--name=value`, `--switch`, `--no-switch`; everything
 * behind `--` is an argument.
 *
 * @throws TrawlError USAGE.
 */
export function parseArguments(table: OptionTable, argv: readonly string[], command: string): ParsedArguments {
  const flags = new Map<string, string[]>();
  const positionals: string[] = [];
  const add = (name: string, value: string): void => void flags.set(name, [...(flags.get(name) ?? []), value]);
  for (let i = 0; i < argv.length; i++) {
    const argument = argv[i]!;
    if (argument === '--') {
      positionals.push(...argv.slice(i + 1));
      break;
    }
    if (!argument.startsWith('--')) {
      if (argument.startsWith('-') && argument.length > 1) {
        throw new TrawlError(
          'USAGE',
          `Unknown option ${argument}. Options have two dashes (see \`trawl ${command} --help\`); an argument that ` +
            'begins with a dash goes behind --.',
        );
      }
      positionals.push(argument);
      continue;
    }
    const equals = argument.indexOf('=');
    const name = argument.slice(2, equals < 0 ? undefined : equals);
    const inline = equals < 0 ? undefined : argument.slice(equals + 1);
    const positive = optionOf(table, name);
    const negated = name.startsWith('no-') ? optionOf(table, name.slice(3)) : undefined;
    if (positive?.kind === 'flag' || (positive === undefined && negated?.kind === 'flag')) {
      if (inline !== undefined) {
        throw new TrawlError('USAGE', `--${name} is a switch and takes no value; --no-NAME switches one off.`);
      }
      add(positive === undefined ? name.slice(3) : name, positive === undefined ? 'false' : 'true');
    } else if (positive === undefined) {
      const near = closestTo(name, optionNames(table));
      throw new TrawlError(
        'USAGE',
        `Unknown option --${name}${near === undefined ? '.' : `; did you mean --${near}?`} See \`trawl ${command} --help\`.`,
      );
    } else {
      const value = inline ?? argv[++i];
      if (value === undefined) throw new TrawlError('USAGE', `--${name} needs a value.`);
      // `--out --json` is a forgotten folder far more often than a folder of that name.
      if (inline === undefined && value.startsWith('--')) {
        throw new TrawlError(
          'USAGE',
          `--${name} needs a value, but ${value} follows. A value that begins with dashes is written --${name}=${value}.`,
        );
      }
      add(name, value);
    }
  }
  return { flags, positionals };
}

/** As they are written on the command line: with the negation of each switch. */
function optionNames(table: OptionTable): string[] {
  return Object.entries(table).flatMap(([name, spec]) => (spec.kind === 'flag' ? [name, `no-${name}`] : [name]));
}
