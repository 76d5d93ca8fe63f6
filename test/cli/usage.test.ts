import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { EXIT } from '../../cli/program/command.ts';
import { loadCommands } from '../../cli/program/commands.ts';
import { commandHelp } from '../../cli/program/help.ts';
import { environmentName, type OptionTable } from '../../src/base/options/option-spec.ts';
import { packageVersion } from '../../src/base/package-root.ts';
import { SEARCH_DIALECTS } from '../../src/server/dialects/dispatch.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { runTrawl, SAMPLE_PASSAGES } from './run-trawl.ts';

const COMMANDS = await loadCommands();

test('trawl without arguments prints its help on stderr and is a usage error', async () => {
  const { code, stdout, stderr } = await runTrawl([]);
  assert.equal(code, EXIT.usage);
  assert.equal(stdout, '');
  const width = Math.max(...COMMANDS.map(({ name }) => name.length));
  for (const { name, summary } of COMMANDS) assert.ok(stderr.includes(`${name.padEnd(width)}  ${summary}`), name);
});

test('--help, -h and help print the help on stdout', async () => {
  for (const args of [['--help'], ['-h'], ['help']]) {
    const { code, stdout, stderr } = await runTrawl(args);
    assert.equal(code, EXIT.ok);
    assert.equal(stderr, '');
    assert.match(stdout, /^trawl .*\n\nUsage: trawl <command> \[options\]/);
  }
});

test('--version and -V print only the version', async () => {
  for (const args of [['--version'], ['-V']]) {
    const { code, stdout } = await runTrawl(args);
    assert.deepEqual([code, stdout], [EXIT.ok, `${packageVersion}\n`]);
  }
});

test('trawl eval --dialect can name every dialect with a client', () => {
  const { dialect } = COMMANDS.find(({ name }) => name === 'eval')!.options;
  assert.deepEqual(
    dialect!.type === 'choice' && dialect!.choices,
    SEARCH_DIALECTS.map(({ name }) => name),
  );
});

for (const command of COMMANDS) {
  test(`the help of trawl ${command.name} names its arguments, options, variables, defaults and examples`, async () => {
    const { code, stdout, stderr } = await runTrawl([command.name, '--port', '--help']);
    assert.deepEqual([code, stderr], [EXIT.ok, '']);
    assert.ok(stdout.startsWith(`Usage: trawl ${command.name} ${command.positionals.usage}`.trimEnd()));
    for (const argument of Object.keys(command.positionals.help)) {
      assert.ok(stdout.includes(`\n  ${argument}\n`), argument);
    }
    const options: OptionTable = command.options;
    for (const [name, spec] of Object.entries(options)) {
      const shown = spec.type === 'flag' && spec.default === true ? `--no-${name}` : `--${name}`;
      assert.match(stdout, new RegExp(`^ {2}${shown}( |$)`, 'm'));
      const plain = stdout.replaceAll(/\s+/g, ' ');
      assert.ok(plain.includes(`[${environmentName(name)}]`), environmentName(name));
      if (spec.type !== 'flag' && spec.type !== 'list' && spec.default !== undefined) {
        assert.ok(plain.includes(`Default: ${spec.default}.`), name);
      }
    }
    for (const example of command.examples) assert.ok(stdout.includes(`\n  ${example}`));
    assert.equal(stdout, (await runTrawl(['help', command.name])).stdout);
  });
}

test('no line of a help is wider than a terminal of 100 columns, examples apart', () => {
  for (const command of COMMANDS) {
    const [text] = commandHelp(command).split('\nExamples:');
    for (const line of text!.split('\n')) assert.ok(line.length <= 100, line);
  }
});

const MISUSE: Readonly<Record<string, readonly [args: readonly string[], message: RegExp]>> = {
  'an unknown command': [
    ['serv', 'x'],
    /^trawl: Unknown command serv; did you mean serve\? See `trawl --help`\. \[USAGE\]\n$/,
  ],
  'an unknown command without a similar one': [['photosynthesis'], /^trawl: Unknown command photosynthesis\. See/],
  'help for an unknown command': [['help', 'serch'], /did you mean search\?/],
  'an option before the command': [['--port', '80', 'serve'], /The command comes first.*trawl <command> --port/],
  'a missing argument': [['serve'], /<index> is missing: trawl serve <index>/],
  'too many arguments': [['search', 'i', 'two', 'words'], /Too many arguments \(words; quote a text with spaces\)/],
  'an unknown option': [['serve', 'i', '--prot', '1'], /Unknown option --prot; did you mean --port\?/],
  "another tool's name of an option": [
    ['search', 'i', 'q', '--topk', '3'],
    /Unknown option --topk; did you mean --k\?/,
  ],
  'a port out of range': [
    ['serve', 'i', '--port', '65536'],
    /--port is "65536"; expected a whole number from 0 to 65535/,
  ],
  'a default k above the largest k': [['serve', 'i', '--topk', '9', '--max-k', '5'], /--topk is 9, but --max-k is 5/],
  'an index without --out': [['index', SAMPLE_PASSAGES], /--out is missing: the index directory/],
  'an empty --out': [['index', SAMPLE_PASSAGES, '--out', ''], /--out is missing: the index directory/],
  'a search without query': [['search', 'i'], /Expected either a query or --queries FILE/],
  'a search with both': [['search', 'i', 'q', '--queries', 'f'], /Expected either a query or --queries FILE/],
  'a search of a file without --out': [['search', 'i', '--queries', 'f'], /--queries needs --out FILE/],
  'an evaluation without questions': [['eval', 'i'], /--queries is missing/],
  'a cutoff that is no number': [['eval', 'i', '--queries', 'f', '--cutoffs', '1,x'], /--cutoffs is "1,x"/],
  'a cutoff of 0': [['eval', 'i', '--queries', 'f', '--cutoffs', '0,5'], /whole numbers from 1/],
  'a cutoff beyond 2^53': [
    ['eval', 'i', '--queries', 'f', '--cutoffs', '99999999999999999999'],
    /whole numbers from 1/,
  ],
};

for (const [name, [args, message]] of Object.entries(MISUSE)) {
  test(`${name} is a usage error: exit code 2, nothing on stdout`, async () => {
    const { code, stdout, stderr } = await runTrawl(args);
    assert.deepEqual([code, stdout], [EXIT.usage, '']);
    assert.match(stderr, message);
    assert.doesNotMatch(stderr, /\n {4}at /);
  });
}

const FAILURES: Readonly<Record<string, readonly [args: readonly string[], code: string, message: RegExp]>> = {
  'a missing index': [['inspect', '/nonexistent/index'], 'INDEX_NOT_FOUND', /\/nonexistent\/index: no index found/],
  'a missing corpus': [['index', '/nonexistent.jsonl', '--out', 'x'], 'CORPUS_NOT_FOUND', /nonexistent\.jsonl/],
  'a missing model': [
    ['index', SAMPLE_PASSAGES, '--out', 'x', '--model', 'none'],
    'MODEL_NOT_FOUND',
    /Model "none" not found.*token-average-256/,
  ],
  'an invalid template': [['index', SAMPLE_PASSAGES, '--out', 'x', '--passage-template', '{'], 'TEMPLATE_INVALID', /./],
  'a missing configuration file': [
    ['doctor', '--config', 'none.json'],
    'CONFIG_INVALID',
    /none\.json: the configuration file does not exist/,
  ],
};

for (const [name, [args, code, message]] of Object.entries(FAILURES)) {
  test(`${name} is exit code 1, as text and as JSON`, async () => {
    const [text, json] = [await runTrawl(args), await runTrawl([...args, '--json'])];
    for (const { code: exit, stdout } of [text, json]) assert.deepEqual([exit, stdout], [EXIT.failed, '']);
    assert.match(text.stderr, message);
    assert.ok(text.stderr.endsWith(`[${code}]\n`), text.stderr);
    const { error } = JSON.parse(json.stderr) as { error: { code: string; message: string; details: object } };
    assert.equal(error.code, code);
    assert.match(error.message, message);
    assert.equal(typeof error.details, 'object');
  });
}

test('with --json usage errors are JSON', async () => {
  const lines = [
    ['bogus', '--json'],
    ['help', 'bogus', '--json'],
    ['serve', '--json'],
    ['serve', 'i', '--json', '--prot', '1'],
  ];
  for (const line of lines) {
    const { code, stdout, stderr } = await runTrawl(line);
    assert.deepEqual([code, stdout], [EXIT.usage, '']);
    assert.equal((JSON.parse(stderr) as { error: { code: string } }).error.code, 'USAGE');
  }
});

test('everything after -- is an argument, even --help', async () => {
  const { code, stderr } = await runTrawl(['inspect', '--', '--help']);
  assert.equal(code, EXIT.failed);
  assert.match(stderr, /--help: no index found/);
});

test('commands read the environment and trawl.config.json in the current folder', async (t) => {
  const cwd = await tempFolder(t);
  const fromEnvironment = await runTrawl(['serve', 'i'], { cwd, env: { TRAWL_PORT: 'eighty' } });
  assert.equal(fromEnvironment.code, EXIT.failed);
  assert.match(fromEnvironment.stderr, /TRAWL_PORT is "eighty".*\[CONFIG_INVALID\]/);
  writeFileSync(join(cwd, 'trawl.config.json'), '{"serve": {"port": "80"}}');
  const fromFile = await runTrawl(['serve', 'i'], { cwd });
  assert.match(
    fromFile.stderr,
    /trawl\.config\.json: "serve\.port" is "80"; expected a whole number\. \[CONFIG_INVALID\]/,
  );
  writeFileSync(join(cwd, 'trawl.config.json'), '{"index": {"quiet": true}, "servee": {}}');
  assert.match((await runTrawl(['serve', 'i'], { cwd })).stderr, /"servee" is not a command; did you mean "serve"\?/);
});
