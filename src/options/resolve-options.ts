import { existsSync, readFileSync } from 'node:fs';
import { TrawlError } from '../errors.ts';
import { closestTo } from './closest.ts';
import { environmentName, type OptionSpec, type OptionTable, type OptionValues } from './option-spec.ts';

/** Read where no `--config` is given. */
export const DEFAULT_CONFIG_FILE = 'trawl.config.json';

export interface OptionSources {
  /** Name of the command: its section of the configuration file. */
  readonly command: string;
  /** Arguments behind the command's name. */
  readonly argv: readonly string[];
  /** Default: the environment of the process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Default: the current folder. */
  readonly folder?: string;
}

export interface ResolvedOptions<Table extends OptionTable> {
  readonly options: OptionValues<Table>;
  readonly positionals: readonly string[];
  /** Options that a person set somewhere, as opposed to defaults. */
  readonly given: ReadonlySet<string>;
}

/** The value of a setting that is no option of a command, such as TRAWL_ISA. The one door to the environment. */
export function environmentVariable(name: `TRAWL_${string}`): string | undefined {
  return process.env[name];
}

/**
 * Flags win over the environment, the environment over the configuration file, the file over the defaults.
 *
 * @throws TrawlError USAGE for the command line, CONFIG_INVALID for environment and file.
 */
export function resolveOptions<Table extends OptionTable>(
  table: Table,
  sources: OptionSources,
): ResolvedOptions<Table> {
  const env = sources.env ?? process.env;
  const { flags, positionals } = parseArguments(table, sources.argv, sources.command);
  const configFile = lastOf(flags.get('config')) ?? env[environmentName('config')];
  const file = readConfigFile(table, sources.command, configFile, sources.folder);
  const values: Record<string, unknown> = {};
  const given = new Set<string>();
  for (const [name, spec] of Object.entries(table)) {
    const variable = environmentName(name);
    const fromFlag = flags.get(name);
    const fromEnvironment = env[variable];
    if (fromFlag !== undefined || (fromEnvironment !== undefined && fromEnvironment !== '') || file.has(name))
      given.add(name);
    if (fromFlag !== undefined) values[name] = valueOf(spec, fromFlag, 'USAGE', `--${name}`);
    else if (fromEnvironment !== undefined && fromEnvironment !== '') {
      const texts = spec.kind === 'list' ? fromEnvironment.split(',') : [fromEnvironment];
      values[name] = valueOf(spec, texts, 'CONFIG_INVALID', variable);
    } else if (file.has(name)) values[name] = file.get(name);
    else values[name] = spec.kind === 'flag' ? (spec.default ?? false) : spec.kind === 'list' ? [] : spec.default;
  }
  return { options: Object.freeze(values) as OptionValues<Table>, positionals, given };
}

function parseArguments(
  table: OptionTable,
  argv: readonly string[],
  command: string,
): { flags: Map<string, string[]>; positionals: string[] } {
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
          `Unknown option ${argument}. Options have two dashes: see \`trawl ${command} --help\`.`,
        );
      }
      positionals.push(argument);
      continue;
    }
    const equals = argument.indexOf('=');
    const name = argument.slice(2, equals < 0 ? undefined : equals);
    const inline = equals < 0 ? undefined : argument.slice(equals + 1);
    const positive = table[name];
    const negated = name.startsWith('no-') ? table[name.slice(3)] : undefined;
    if (positive?.kind === 'flag' || (positive === undefined && negated?.kind === 'flag')) {
      if (inline !== undefined) throw new TrawlError('USAGE', `--${name} is a switch and takes no value.`);
      add(positive === undefined ? name.slice(3) : name, positive === undefined ? 'false' : 'true');
    } else if (positive === undefined) {
      const near = closestTo(name, Object.keys(table));
      throw new TrawlError(
        'USAGE',
        `Unknown option --${name}${near === undefined ? '' : `; did you mean --${near}?`} See \`trawl ${command} --help\`.`,
      );
    } else {
      const value = inline ?? argv[++i];
      if (value === undefined) throw new TrawlError('USAGE', `--${name} needs a value.`);
      add(name, value);
    }
  }
  return { flags, positionals };
}

function readConfigFile(
  table: OptionTable,
  command: string,
  path: string | undefined,
  folder = process.cwd(),
): Map<string, unknown> {
  const file = path ?? `${folder}/${DEFAULT_CONFIG_FILE}`;
  const values = new Map<string, unknown>();
  if (path === undefined && !existsSync(file)) return values;
  const invalid = (reason: string, cause?: unknown): TrawlError =>
    new TrawlError('CONFIG_INVALID', `${file}: ${reason}.`, { cause });
  let json: unknown;
  try {
    json = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw invalid((error as Error).message, error);
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json)) throw invalid('has to hold a JSON object');
  const section = (json as Record<string, unknown>)[command];
  if (section === undefined) return values;
  if (typeof section !== 'object' || section === null || Array.isArray(section)) {
    throw invalid(`"${command}" has to be an object of options`);
  }
  for (const [name, value] of Object.entries(section)) {
    const spec = table[name];
    if (spec === undefined || name === 'config') {
      const near = closestTo(name, Object.keys(table));
      throw invalid(`"${command}" has no option "${name}"${near === undefined ? '' : `; did you mean "${near}"?`}`);
    }
    const texts = Array.isArray(value) ? value.map(String) : [String(value)];
    if (Array.isArray(value) && spec.kind !== 'list') throw invalid(`"${command}.${name}" takes one value`);
    values.set(name, valueOf(spec, texts, 'CONFIG_INVALID', `${file}: "${command}.${name}"`));
  }
  return values;
}

function valueOf(spec: OptionSpec, texts: readonly string[], code: 'USAGE' | 'CONFIG_INVALID', where: string): unknown {
  if (spec.kind === 'list') return Object.freeze([...texts]);
  const text = texts.at(-1)!;
  const refuse = (expected: string): TrawlError =>
    new TrawlError(code, `${where} is ${JSON.stringify(text)}; it has to be ${expected}.`);
  switch (spec.kind) {
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
      const bounds = [
        spec.min === undefined ? '' : `at least ${spec.min}`,
        spec.max === undefined ? '' : `at most ${spec.max}`,
      ];
      throw refuse(
        ['a whole number', bounds.filter((bound) => bound !== '').join(' and ')]
          .filter((part) => part !== '')
          .join(' of '),
      );
    }
    default:
      throw new TypeError(`unknown option kind: ${spec satisfies never}`);
  }
}

function lastOf(values: readonly string[] | undefined): string | undefined {
  return values?.at(-1);
}
