import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { TrawlError } from '../errors.ts';
import { readJsonSync } from '../files/read-json.ts';
import { isObject } from '../objects.ts';
import { closestTo, suggestOption } from './closest.ts';
import { type OptionSpec, type OptionTable, optionOf, optionValue } from './option-spec.ts';

/** Read if it exists and `--config` is not given. */
const DEFAULT_CONFIG_FILE = 'trawl.config.json';

interface ConfigSection {
  /** Name of the command. */
  readonly command: string;
  /** Names of all commands: other sections are refused. Default: any name is allowed. */
  readonly commands?: readonly string[];
  /** The folder that paths are relative to. Default: the current folder. */
  readonly folder?: string;
}

/**
 * Reads the option values in a command's section of the configuration file. The default file may be missing.
 *
 * @throws TrawlError CONFIG_INVALID with the file and the mistake.
 */
export function readConfigFile(
  table: OptionTable,
  { command, commands, folder = process.cwd() }: ConfigSection,
  path: string | undefined,
): Map<string, unknown> {
  const file = path === undefined || path === '' ? join(folder, DEFAULT_CONFIG_FILE) : resolve(folder, path);
  const values = new Map<string, unknown>();
  if ((path === undefined || path === '') && !existsSync(file)) return values;
  const invalid = (reason: string, cause?: unknown): TrawlError =>
    new TrawlError('CONFIG_INVALID', `${file}: ${reason}`, { cause });
  const json = readJsonSync(file, 'the configuration file', (reason, cause) => invalid(`${reason}.`, cause));
  if (!isObject(json)) throw invalid('expected a JSON object with one object of options per command.');
  for (const name of Object.keys(json)) {
    if (commands === undefined || commands.includes(name)) continue;
    const near = closestTo(name, commands);
    const advice = near === undefined ? `expected one of ${commands.join(', ')}.` : `did you mean "${near}"?`;
    throw invalid(`"${name}" is not a command; ${advice}`);
  }
  if (!Object.hasOwn(json, command)) return values;
  const section = json[command];
  if (!isObject(section)) throw invalid(`"${command}" must be an object of options.`);
  for (const [name, value] of Object.entries(section)) {
    const spec = name === 'config' ? undefined : optionOf(table, name);
    if (spec === undefined) {
      const { config: _, ...others } = table;
      const near = suggestOption(name, Object.keys(others));
      throw invalid(`"${command}" has no option "${name}"${near === undefined ? '.' : `; did you mean "${near}"?`}`);
    }
    values.set(name, valueFromJson(spec, value, `${file}: "${command}.${name}"`));
  }
  return values;
}

/** A JSON value must have the option's type: a number in quotes is refused. */
function valueFromJson(spec: OptionSpec, value: unknown, where: string): unknown {
  const expected = JSON_TYPES[spec.type];
  const fits =
    spec.type === 'list'
      ? Array.isArray(value) && value.every((each) => typeof each === 'string')
      : typeof value === expected.type;
  if (!fits) throw new TrawlError('CONFIG_INVALID', `${where} is ${JSON.stringify(value)}; expected ${expected.text}.`);
  const texts = Array.isArray(value) ? value.map(String) : [String(value)];
  return optionValue(spec, texts, 'CONFIG_INVALID', where);
}

const JSON_TYPES: Readonly<Record<OptionSpec['type'], { readonly type: string; readonly text: string }>> = {
  string: { type: 'string', text: 'a string' },
  choice: { type: 'string', text: 'a string' },
  integer: { type: 'number', text: 'a whole number' },
  flag: { type: 'boolean', text: 'true or false' },
  list: { type: 'object', text: 'an array of strings' },
};
