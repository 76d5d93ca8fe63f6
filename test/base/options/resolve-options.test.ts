import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { TrawlError } from '../../../src/base/errors.ts';
import { environmentName, type OptionTable } from '../../../src/base/options/option-spec.ts';
import { type OptionSources, type ResolvedOptions, resolveOptions } from '../../../src/base/options/resolve-options.ts';
import { runs } from '../../helpers/runs.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

/** Random command lines. */
const COUNT = runs(500, 2_000);

const TABLE = {
  name: { type: 'string', default: 'from-default', help: 'A text.' },
  'max-k': { type: 'integer', min: 1, max: 100, default: 7, help: 'A number.' },
  offset: { type: 'integer', help: 'A number without bounds.' },
  verbose: { type: 'flag', help: 'Off by default.' },
  color: { type: 'flag', default: true, help: 'On by default.' },
  mode: { type: 'choice', choices: ['fast', 'slow', 'auto'], default: 'auto', help: 'One of three.' },
  field: { type: 'list', help: 'Several.' },
  note: { type: 'string', help: 'Without a default.' },
  config: { type: 'string', help: 'The file.' },
} as const satisfies OptionTable;

/** Resolves options in an empty folder, away from any configuration file of this machine. */
async function resolver(
  t: TestContext,
): Promise<(sources?: Partial<OptionSources>, file?: unknown) => ResolvedOptions<typeof TABLE>> {
  const folder = await tempFolder(t);
  return (sources = {}, file) => {
    if (file !== undefined) {
      writeFileSync(join(folder, 'trawl.config.json'), typeof file === 'string' ? file : JSON.stringify(file));
    }
    return resolveOptions(TABLE, {
      command: 'serve',
      commands: ['serve', 'index'],
      argv: [],
      env: {},
      folder,
      ...sources,
    });
  };
}

/** Every option type with a different value from every source. */
const SOURCES = [
  {
    option: 'name',
    fallback: 'from-default',
    file: ['from-file', 'from-file'],
    env: ['from-env', 'from-env'],
    flag: [['--name', 'from-flag'], 'from-flag'],
  },
  { option: 'max-k', fallback: 7, file: [8, 8], env: ['9', 9], flag: [['--max-k', '10'], 10] },
  { option: 'offset', fallback: undefined, file: [-1, -1], env: ['-2', -2], flag: [['--offset=-3'], -3] },
  { option: 'verbose', fallback: false, file: [true, true], env: ['off', false], flag: [['--verbose'], true] },
  { option: 'color', fallback: true, file: [false, false], env: ['YES', true], flag: [['--no-color'], false] },
  {
    option: 'mode',
    fallback: 'auto',
    file: ['fast', 'fast'],
    env: ['slow', 'slow'],
    flag: [['--mode', 'auto'], 'auto'],
  },
  {
    option: 'field',
    fallback: [],
    file: [
      ['f1', 'f2'],
      ['f1', 'f2'],
    ],
    env: ['e1,e2', ['e1', 'e2']],
    flag: [
      ['--field', 'a', '--field=b'],
      ['a', 'b'],
    ],
  },
] as const;

for (const { option, fallback, file, env, flag } of SOURCES) {
  test(`--${option}: the command line wins over the environment, the environment over the file, the file over the default`, async (t) => {
    const resolve = await resolver(t);
    const value = (sources: Partial<OptionSources>, config?: unknown): unknown =>
      resolve(sources, config).options[option];
    assert.deepEqual(value({}), fallback);
    assert.equal(resolve().given.has(option), false);
    const config = { serve: { [option]: file[0] } };
    assert.deepEqual(value({}, config), file[1]);
    const fromEnvironment = { env: { [environmentName(option)]: env[0] } };
    assert.deepEqual(value(fromEnvironment, config), env[1]);
    assert.deepEqual(value({ ...fromEnvironment, argv: flag[0] }, config), flag[1]);
    assert.ok(resolve({ argv: flag[0] }, config).given.has(option));
    assert.ok(resolve({}, config).given.has(option));
  });
}

test('an empty environment variable counts as absent', async (t) => {
  const resolve = await resolver(t);
  const { options, given } = resolve({ env: { TRAWL_NAME: '', TRAWL_MAX_K: '' } }, { serve: { name: 'file' } });
  assert.equal(options.name, 'file');
  assert.equal(options['max-k'], 7);
  assert.equal(given.has('max-k'), false);
});

test('the last value of a repeated option wins, and the options are frozen', async (t) => {
  const resolve = await resolver(t);
  const { options } = resolve({ argv: ['--max-k', '2', '--max-k=3', '--verbose', '--no-verbose'] });
  assert.equal(options['max-k'], 3);
  assert.equal(options.verbose, false);
  assert.ok(Object.isFrozen(options) && Object.isFrozen(options.field));
});

test('arguments, inline values and -- are parsed', async (t) => {
  const resolve = await resolver(t);
  const { options, positionals } = resolve({
    argv: ['first', '--name=a=b', '-', '--note=', '--verbose', 'second', '--', '--max-k', '-x', '--'],
  });
  assert.deepEqual(positionals, ['first', '-', 'second', '--max-k', '-x', '--']);
  assert.equal(options.name, 'a=b');
  assert.equal(options.note, '');
  assert.equal(options.verbose, true);
  assert.equal(options['max-k'], 7);
});

const USAGE: Readonly<Record<string, readonly [argv: readonly string[], message: RegExp]>> = {
  'an unknown option is refused, and the closest one suggested': [
    ['--max-j', '3'],
    /Unknown option --max-j; did you mean --max-k\? See `trawl serve --help`/,
  ],
  'a misspelt negation is refused, and the closest one suggested': [['--no-colour'], /did you mean --no-color\?/],
  'an option unlike all others is refused without a suggestion': [['--zzzzzzzz'], /^Unknown option --zzzzzzzz\. See/],
  'a property of every object is no option': [['--constructor', 'x'], /Unknown option --constructor\./],
  '__proto__ is no option': [['--__proto__=x'], /Unknown option --__proto__\./],
  'an empty name is no option': [['--=x'], /Unknown option --\./],
  'an option with one dash is refused': [['-k', '3'], /Unknown option -k\. Options begin with two dashes/],
  'an option without its value at the end is refused': [['--name'], /--name needs a value\./],
  'an option is not taken as the value of the one before': [
    ['--name', '--verbose'],
    /--name needs a value, but --verbose follows.*--name=--verbose/,
  ],
  'a flag takes no value': [['--verbose=yes'], /--verbose takes no value/],
  'only a flag can be negated': [['--no-name'], /Unknown option --no-name/],
  'a word is no number': [['--max-k', 'seven'], /--max-k is "seven"; expected a whole number from 1 to 100\./],
  'an empty value is no number': [['--max-k='], /--max-k is "";/],
  'a fraction is refused': [['--max-k', '1.5'], /--max-k is "1.5";/],
  'a hexadecimal number is refused': [['--max-k', '0x10'], /--max-k is "0x10";/],
  'a number below its lower bound is refused': [['--max-k', '0'], /from 1 to 100/],
  'a number above its upper bound is refused': [['--max-k', '101'], /from 1 to 100/],
  'a number too large to be exact is refused': [
    ['--offset', '9007199254740993'],
    /--offset is "9007199254740993"; expected a whole number\./,
  ],
  'a value that is none of the choices is refused': [
    ['--mode', 'FAST'],
    /--mode is "FAST"; expected one of fast, slow, auto\./,
  ],
};

for (const [name, [argv, message]] of Object.entries(USAGE)) {
  test(`on the command line ${name}`, async (t) => {
    const resolve = await resolver(t);
    assert.throws(() => resolve({ argv }), trawlError('USAGE', message));
  });
}

test('the bounds themselves are allowed', async (t) => {
  const resolve = await resolver(t);
  for (const k of [1, 100]) assert.equal(resolve({ argv: ['--max-k', `${k}`] }).options['max-k'], k);
  assert.equal(resolve({ argv: ['--offset', '+9007199254740991'] }).options.offset, Number.MAX_SAFE_INTEGER);
});

test('a bad environment variable is CONFIG_INVALID, and the message names it', async (t) => {
  const resolve = await resolver(t);
  const refused = (env: Record<string, string>, message: RegExp): void =>
    assert.throws(() => resolve({ env }), trawlError('CONFIG_INVALID', message));
  refused({ TRAWL_MAX_K: 'many' }, /TRAWL_MAX_K is "many"; expected a whole number from 1 to 100/);
  refused({ TRAWL_MAX_K: '101' }, /TRAWL_MAX_K is "101"/);
  refused({ TRAWL_VERBOSE: 'maybe' }, /TRAWL_VERBOSE is "maybe"; expected true or false/);
  refused({ TRAWL_MODE: 'quick' }, /TRAWL_MODE is "quick"; expected one of fast, slow, auto/);
});

test('a bad environment variable is ignored if the command line sets the option', async (t) => {
  const resolve = await resolver(t);
  assert.equal(resolve({ env: { TRAWL_MAX_K: 'many' }, argv: ['--max-k', '5'] }).options['max-k'], 5);
});

const FILES: Readonly<Record<string, readonly [file: unknown, message: RegExp]>> = {
  'that is not JSON is refused': ['{"serve": ', /trawl\.config\.json: not valid JSON: /],
  'that holds an array is refused': [[], /expected a JSON object/],
  'that holds null is refused': ['null', /expected a JSON object/],
  'with a command that does not exist is refused': [{ serv: {} }, /"serv" is not a command; did you mean "serve"\?/],
  'with a section that is no object is refused': [{ serve: 5 }, /"serve" must be an object of options/],
  'with an unknown option is refused': [
    { serve: { 'max-j': 1 } },
    /"serve" has no option "max-j"; did you mean "max-k"\?/,
  ],
  'with a property of every object is refused': [{ serve: { toString: 1 } }, /"serve" has no option "toString"/],
  'cannot name another file': [{ serve: { config: 'x' } }, /"serve" has no option "config"/],
  'with a number in quotes is refused': [{ serve: { 'max-k': '5' } }, /"serve\.max-k" is "5"; expected a whole number/],
  'with a fraction is refused': [{ serve: { 'max-k': 1.5 } }, /"serve\.max-k" is "1\.5"/],
  'with a number out of bounds is refused': [{ serve: { 'max-k': 1000 } }, /from 1 to 100/],
  'with null is refused': [{ serve: { name: null } }, /"serve\.name" is null; expected a string/],
  'with an object for a string is refused': [{ serve: { name: {} } }, /"serve\.name" is \{\}/],
  'with a string for a flag is refused': [
    { serve: { verbose: 'true' } },
    /"serve\.verbose" is "true"; expected true or false/,
  ],
  'with several values for a string is refused': [{ serve: { name: ['a', 'b'] } }, /"serve\.name" is \["a","b"\]/],
  'with one value for a list is refused': [
    { serve: { field: 'a' } },
    /"serve\.field" is "a"; expected an array of strings/,
  ],
  'with a number in a list is refused': [{ serve: { field: ['a', 1] } }, /an array of strings/],
  'with a wrong choice is refused': [{ serve: { mode: 'quick' } }, /"serve\.mode" is "quick"; expected one of/],
};

for (const [name, [file, message]] of Object.entries(FILES)) {
  test(`a configuration file ${name}`, async (t) => {
    const resolve = await resolver(t);
    assert.throws(() => resolve({}, file), trawlError('CONFIG_INVALID', message));
  });
}

test('a configuration file for another command, empty, or with a byte order mark is fine', async (t) => {
  const resolve = await resolver(t);
  assert.equal(resolve({}, { index: { 'max-k': 'not looked at' } }).options['max-k'], 7);
  assert.equal(resolve({}, {}).options['max-k'], 7);
  assert.equal(resolve({}, '\uFEFF{"serve": {"max-k": 5}}').options['max-k'], 5);
});

test('--config names the file to read, else TRAWL_CONFIG', async (t) => {
  const folder = await tempFolder(t);
  mkdirSync(join(folder, 'sub'));
  writeFileSync(join(folder, 'trawl.config.json'), '{"serve": {"max-k": 1}}');
  writeFileSync(join(folder, 'env.json'), '{"serve": {"max-k": 2}}');
  writeFileSync(join(folder, 'sub', 'flag.json'), '{"serve": {"max-k": 3}}');
  const k = (argv: string[], env: Record<string, string>): number =>
    resolveOptions(TABLE, { command: 'serve', argv, env, folder }).options['max-k'];
  assert.equal(k([], {}), 1);
  assert.equal(k([], { TRAWL_CONFIG: join(folder, 'env.json') }), 2);
  assert.equal(k(['--config', 'sub/flag.json'], { TRAWL_CONFIG: join(folder, 'env.json') }), 3);
  assert.equal(k([], { TRAWL_CONFIG: '' }), 1);
});

test('argumentsOnly leaves out the environment and every configuration file', async (t) => {
  const folder = await tempFolder(t);
  writeFileSync(join(folder, 'trawl.config.json'), '{"serve": {"max-k": "wrong"}}');
  const env = { TRAWL_MAX_K: 'wrong', TRAWL_CONFIG: 'missing.json' };
  const { options, given } = resolveOptions(TABLE, { command: 'serve', argv: [], env, folder, argumentsOnly: true });
  assert.equal(options['max-k'], 7);
  assert.deepEqual([...given], []);
});

test('a file named by --config must exist and be readable', async (t) => {
  const resolve = await resolver(t);
  assert.throws(
    () => resolve({ argv: ['--config', 'none.json'] }),
    trawlError('CONFIG_INVALID', /none\.json: the configuration file does not exist/),
  );
  assert.throws(() => resolve({ argv: ['--config', '.'] }), trawlError('CONFIG_INVALID', /cannot be read/));
});

test('the process environment and the current folder are the default sources', () => {
  process.env.TRAWL_NOTE = 'from the process';
  try {
    assert.equal(resolveOptions(TABLE, { command: 'serve', argv: [] }).options.note, 'from the process');
  } finally {
    delete process.env.TRAWL_NOTE;
  }
});

test('any command line and environment give a result or a TrawlError', async (t) => {
  const resolve = await resolver(t);
  const names = [...Object.keys(TABLE), 'no-color', 'no-name', 'constructor', '__proto__', ''];
  const argument = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.constantFrom('--', '-', '-h', '', ...names.map((name) => `--${name}`)),
    fc.tuple(fc.constantFrom(...names), fc.string()).map(([name, value]) => `--${name}=${value}`),
  );
  const env = fc.dictionary(fc.constantFrom(...Object.keys(TABLE).map(environmentName)), fc.string());
  let results = 0;
  fc.assert(
    fc.property(fc.array(argument, { maxLength: 6 }), env, (argv, variables) => {
      try {
        const { options } = resolve({ argv, env: { ...variables, TRAWL_CONFIG: '' } });
        assert.deepEqual(Object.keys(options), Object.keys(TABLE));
        assert.ok(options['max-k'] >= 1 && options['max-k'] <= 100);
        assert.ok(['fast', 'slow', 'auto'].includes(options.mode));
        results++;
      } catch (error) {
        assert.ok(error instanceof TrawlError, String(error));
        assert.ok(error.code === 'USAGE' || error.code === 'CONFIG_INVALID', error.code);
        assert.match(error.message, /\.$/);
      }
    }),
    { numRuns: COUNT, seed: 42 },
  );
  assert.ok(results > COUNT / 20, `${results} of ${COUNT} were allowed`);
});
