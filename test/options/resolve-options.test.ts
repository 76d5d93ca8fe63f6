import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { TrawlError } from '../../src/errors.ts';
import { environmentName, type OptionTable } from '../../src/options/option-spec.ts';
import { type OptionSources, type ResolvedOptions, resolveOptions } from '../../src/options/resolve-options.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';

const TABLE = {
  name: { kind: 'string', default: 'from-default', help: 'A text.' },
  'max-k': { kind: 'integer', min: 1, max: 100, default: 7, help: 'A number.' },
  offset: { kind: 'integer', help: 'A number without bounds.' },
  verbose: { kind: 'flag', help: 'Off by default.' },
  color: { kind: 'flag', default: true, help: 'On by default.' },
  mode: { kind: 'choice', choices: ['fast', 'slow', 'auto'], default: 'auto', help: 'One of three.' },
  field: { kind: 'list', help: 'Several.' },
  note: { kind: 'string', help: 'Without a default.' },
  config: { kind: 'string', help: 'The file.' },
} as const satisfies OptionTable;

/** An empty folder, so that no configuration file of this machine has a say. */
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

/** Each kind with a value from each place, all different. */
const PLACES = [
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

for (const { option, fallback, file, env, flag } of PLACES) {
  test(`--${option}: a flag wins over the environment, that over the file, that over the default`, async (t) => {
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

test('the last of a repeated option wins, and the options are frozen', async (t) => {
  const resolve = await resolver(t);
  const { options } = resolve({ argv: ['--max-k', '2', '--max-k=3', '--verbose', '--no-verbose'] });
  assert.equal(options['max-k'], 3);
  assert.equal(options.verbose, false);
  assert.ok(Object.isFrozen(options) && Object.isFrozen(options.field));
});

test('arguments, inline values and -- are told apart', async (t) => {
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
  'an unknown option is refused with the nearest that exists': [
    ['--max-j', '3'],
    /Unknown option --max-j; did you mean --max-k\? See `trawl serve --help`/,
  ],
  'a misspelt negation too': [['--no-colour'], /did you mean --no-color\?/],
  'an option like none is refused without a guess': [['--zzzzzzzz'], /^Unknown option --zzzzzzzz\. See/],
  'a name that every object has is no option': [['--constructor', 'x'], /Unknown option --constructor\./],
  'nor is __proto__': [['--__proto__=x'], /Unknown option --__proto__\./],
  'nor is an empty name': [['--=x'], /Unknown option --\./],
  'a dash alone does not make an option': [['-k', '3'], /Unknown option -k\. Options have two dashes/],
  'an option at the end needs its value': [['--name'], /--name needs a value\./],
  'an option is no value of the one before': [
    ['--name', '--verbose'],
    /--name needs a value, but --verbose follows.*--name=--verbose/,
  ],
  'a switch takes no value': [['--verbose=yes'], /--verbose is a switch and takes no value/],
  'only a switch can be negated': [['--no-name'], /Unknown option --no-name/],
  'a number has to be one': [['--max-k', 'seven'], /--max-k is "seven"; it has to be a whole number from 1 to 100\./],
  'a number is not empty': [['--max-k='], /--max-k is "";/],
  'a number is whole': [['--max-k', '1.5'], /--max-k is "1.5";/],
  'a number is decimal': [['--max-k', '0x10'], /--max-k is "0x10";/],
  'a number is not below its lower bound': [['--max-k', '0'], /from 1 to 100/],
  'a number is not above its upper bound': [['--max-k', '101'], /from 1 to 100/],
  'a number without bounds is still exact': [
    ['--offset', '9007199254740993'],
    /--offset is "9007199254740993"; it has to be a whole number\./,
  ],
  'a choice is one of its choices': [['--mode', 'FAST'], /--mode is "FAST"; it has to be one of fast, slow, auto\./],
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

test('a bad environment variable is CONFIG_INVALID and named', async (t) => {
  const resolve = await resolver(t);
  const refused = (env: Record<string, string>, message: RegExp): void =>
    assert.throws(() => resolve({ env }), trawlError('CONFIG_INVALID', message));
  refused({ TRAWL_MAX_K: 'many' }, /TRAWL_MAX_K is "many"; it has to be a whole number from 1 to 100/);
  refused({ TRAWL_MAX_K: '101' }, /TRAWL_MAX_K is "101"/);
  refused({ TRAWL_VERBOSE: 'maybe' }, /TRAWL_VERBOSE is "maybe"; it has to be true or false/);
  refused({ TRAWL_MODE: 'quick' }, /TRAWL_MODE is "quick"; it has to be one of fast, slow, auto/);
});

test('a flag makes a bad environment variable harmless', async (t) => {
  const resolve = await resolver(t);
  assert.equal(resolve({ env: { TRAWL_MAX_K: 'many' }, argv: ['--max-k', '5'] }).options['max-k'], 5);
});

const FILES: Readonly<Record<string, readonly [file: unknown, message: RegExp]>> = {
  'that is not JSON is refused': ['{"serve": ', /trawl\.config\.json: not valid JSON: /],
  'that holds an array is refused': [[], /has to hold a JSON object/],
  'that holds null is refused': ['null', /has to hold a JSON object/],
  'with a command that does not exist is refused': [{ serv: {} }, /there is no command "serv"; did you mean "serve"\?/],
  'with a section that is no object is refused': [{ serve: 5 }, /"serve" has to be an object of options/],
  'with an unknown option is refused': [
    { serve: { 'max-j': 1 } },
    /"serve" has no option "max-j"; did you mean "max-k"\?/,
  ],
  'with a name every object has is refused': [{ serve: { toString: 1 } }, /"serve" has no option "toString"/],
  'cannot name another file': [{ serve: { config: 'x' } }, /"serve" has no option "config"/],
  'with a number in quotes is refused': [
    { serve: { 'max-k': '5' } },
    /"serve\.max-k" is "5"; it has to be a whole number/,
  ],
  'with half a number is refused': [{ serve: { 'max-k': 1.5 } }, /"serve\.max-k" is "1\.5"/],
  'with a number out of bounds is refused': [{ serve: { 'max-k': 1000 } }, /from 1 to 100/],
  'with null is refused': [{ serve: { name: null } }, /"serve\.name" is null; it has to be a text in quotes/],
  'with an object for a text is refused': [{ serve: { name: {} } }, /"serve\.name" is \{\}/],
  'with a text for a switch is refused': [
    { serve: { verbose: 'true' } },
    /"serve\.verbose" is "true"; it has to be true or false/,
  ],
  'with several values for one is refused': [{ serve: { name: ['a', 'b'] } }, /"serve\.name" is \["a","b"\]/],
  'with one value for a list is refused': [
    { serve: { field: 'a' } },
    /"serve\.field" is "a"; it has to be an array of texts/,
  ],
  'with a number in a list is refused': [{ serve: { field: ['a', 1] } }, /an array of texts/],
  'with a wrong choice is refused': [{ serve: { mode: 'quick' } }, /"serve\.mode" is "quick"; it has to be one of/],
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

test('--config, then TRAWL_CONFIG, name the file that is read instead', async (t) => {
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

test('a file that was named has to be there and readable', async (t) => {
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

test('whatever the command line and the environment hold, there is a result or a TrawlError', async (t) => {
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
    { numRuns: 2_000, seed: 42 },
  );
  assert.ok(results > 100, `${results} of 2,000 were allowed`);
});
