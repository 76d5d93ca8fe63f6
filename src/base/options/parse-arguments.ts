import { TrawlError } from '../errors.ts';
import { type OptionTable, optionOf } from './option-spec.ts';
import { suggestOption } from './suggest-option.ts';

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
          `Unknown option ${argument}. Options begin with two dashes (see \`trawl ${command} --help\`); an argument that ` +
            'begins with a dash goes after --.',
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
    if (positive?.type === 'flag' || (positive === undefined && negated?.type === 'flag')) {
      if (inline !== undefined) {
        throw new TrawlError('USAGE', `--${name} takes no value; --no-${name} switches it off.`);
      }
      add(positive === undefined ? name.slice(3) : name, positive === undefined ? 'false' : 'true');
    } else if (positive === undefined) {
      const near = suggestOption(name, optionNames(table));
      throw new TrawlError(
        'USAGE',
        `Unknown option --${name}${near === undefined ? '.' : `; did you mean --${near}?`} See \`trawl ${command} --help\`.`,
      );
    } else {
      const value = inline ?? argv[++i];
      if (value === undefined) throw new TrawlError('USAGE', `--${name} needs a value.`);
      // In `--out --json`, the user probably forgot the folder.
      if (inline === undefined && value.startsWith('--')) {
        throw new TrawlError(
          'USAGE',
          `--${name} needs a value, but ${value} follows. Write a value that begins with dashes as --${name}=${value}.`,
        );
      }
      add(name, value);
    }
  }
  return { flags, positionals };
}

/** Every name that may follow `--`, negated flags included. */
function optionNames(table: OptionTable): string[] {
  return Object.entries(table).flatMap(([name, spec]) => (spec.type === 'flag' ? [name, `no-${name}`] : [name]));
}
