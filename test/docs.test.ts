import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { isLaunchLine, LAUNCH_FLAGS } from '../cli/launch/launch-lines.ts';
import { EXIT } from '../cli/program/command.ts';
import { loadCommands } from '../cli/program/commands.ts';
import { commandHelp } from '../cli/program/help.ts';
import { ERROR_CODES, ERROR_FIXES, type ErrorCode } from '../src/base/errors.ts';
import { environmentName } from '../src/base/options/option-spec.ts';
import { packageRoot } from '../src/base/package-root.ts';
import { buildApp } from '../src/server/app.ts';
import { ERROR_STATUS } from '../src/server/errors/error-status.ts';
import { IndexRegistry } from '../src/server/indexes/index-registry.ts';
import { readPages } from './helpers/markdown.ts';

const COMMANDS = await loadCommands();

const pages = readPages().filter(({ path }) => path !== 'CHANGELOG.md');
const scripts = (
  JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as { scripts: Record<string, string> }
).scripts;

/** Pages that are generated from the code. `TRAWL_UPDATE_DOCS=1 npm test -- docs` writes them. */
const GENERATED: Readonly<Record<string, () => string>> = {
  'docs/command-line.md': () =>
    [
      '# The command line',
      '',
      'Made from `trawl <command> --help`. Options can also come from the environment and a file: [configuration.md](configuration.md).',
      ...COMMANDS.flatMap((command) => ['', `## trawl ${command.name}`, '', '```', commandHelp(command), '```']),
      '',
    ].join('\n'),
  'docs/errors.md': () =>
    [
      '# Errors',
      '',
      'Codes are stable; messages may change. The command line prints the code in brackets after the message (with `--json`, in',
      '`error.code`). HTTP responses have it in `error.code` ([http-api.md](http-api.md#handle-errors)).',
      '',
      'A client repeats a request that was answered with 503, after the seconds of `retry-after`; the clients of this package do. The codes of',
      'the command line and of builds have the status 500, with which a server sends them only through a bug.',
      '',
      '| code | status | repeat | exit code | cause | what helps |',
      '| --- | --- | --- | --- | --- | --- |',
      ...(Object.keys(ERROR_CODES) as ErrorCode[]).map((code) => {
        const status = ERROR_STATUS[code];
        const exit =
          code === 'USAGE' ? EXIT.usage : code === 'CANCELLED' ? `${EXIT.resumable}, ${EXIT.interrupted}` : EXIT.failed;
        return `| \`${code}\` | ${status} | ${status === 503 ? 'yes' : 'no'} | ${exit} | ${ERROR_CODES[code]} | ${ERROR_FIXES[code]} |`;
      }),
      '',
    ].join('\n'),
};

for (const [path, make] of Object.entries(GENERATED)) {
  test(`${path} is up to date`, () => {
    const file = join(packageRoot, path);
    if (process.env['TRAWL_UPDATE_DOCS'] === '1') writeFileSync(file, make());
    assert.equal(readFileSync(file, 'utf8'), make(), `${path} is out of date: TRAWL_UPDATE_DOCS=1 npm test -- docs`);
  });
}

test('every trawl command in a code line exists, with its options', () => {
  let seen = 0;
  for (const { path, codeLines, inlineCode } of pages) {
    for (const line of [...codeLines, ...inlineCode]) {
      for (const [, name, rest] of line.matchAll(/(?:^|[|;&(]\s*|npx |bin\/)trawl ([a-z]+(?:-[a-z]+)*)([^|;&)]*)/g)) {
        const command = COMMANDS.find((candidate) => candidate.name === name);
        assert.ok(command, `${path}: there is no command trawl ${name} (${line})`);
        seen++;
        if (name === 'serve' && isLaunchLine(rest!.split(/\s+/))) continue;
        for (const [, option] of rest!.matchAll(/(?:^|\s)--([a-z][a-z0-9-]*)/g)) {
          const known = { ...command.options, help: true };
          assert.ok(
            option! in known || option!.replace(/^no-/, '') in known,
            `${path}: trawl ${name} has no option --${option}`,
          );
        }
      }
    }
  }
  assert.ok(seen > 10, `${seen} command lines were found`);
});

test('every option, environment variable and npm script that a page names exists', () => {
  const options = new Set(COMMANDS.flatMap((command) => Object.keys(command.options)));
  const variables = new Set(
    [...options]
      .map(environmentName)
      .concat('TRAWL_API_KEYS', 'TRAWL_RERANK_API_KEY', 'TRAWL_ENDPOINT_API_KEY', 'TRAWL_UPDATE_DOCS', 'TRAWL_CONFIG')
      .concat(
        'TRAWL_CLUSTER_ROWS',
        'TRAWL_OPENSEARCH_VERSION',
        'TRAWL_NAME',
        'TRAWL_ISA',
        'TRAWL_CUDA_LIBRARY',
        'TRAWL_SYNC_KEY',
        'TRAWL_ADMIN_KEY',
      )
      .concat('TRAWL_MILVUS_CREDENTIALS', 'TRAWL_MILVUS_CREDENTIALS_FILE')
      .concat('TRAWL_OPENSEARCH_CREDENTIALS', 'TRAWL_OPENSEARCH_CREDENTIALS_FILE'),
  );
  for (const { path, codeLines, inlineCode, text } of pages) {
    // These pages name options of other programs.
    if (path.startsWith('models/') || path.startsWith('native/')) continue;
    for (const code of inlineCode) {
      const [, option] = /^--([a-z][a-zA-Z0-9_-]*)/.exec(code) ?? [];
      if (option !== undefined && !LAUNCH_FLAGS.includes(option))
        assert.ok(
          options.has(option.replace(/^no-/, '')) || option === 'help' || option === 'no-NAME',
          `${path}: no option --${option}`,
        );
    }
    for (const [variable] of text.matchAll(/\bTRAWL_[A-Z0-9_]+\b/g))
      assert.ok(variables.has(variable), `${path}: nothing reads ${variable}`);
    for (const line of [...codeLines, ...inlineCode]) {
      for (const [, script] of line.matchAll(/\bnpm run ([a-z:]+)/g))
        assert.ok(script! in scripts, `${path}: no npm script ${script}`);
      for (const [, check] of line.matchAll(/\bnpm run (?:--silent )?check -- ([a-z]+)/g))
        assert.ok(existsSync(join(packageRoot, 'scripts', 'checks', `${check}.mjs`)), `${path}: no check ${check}`);
    }
  }
});

test('every route that a page names exists', async () => {
  const app = buildApp(new IndexRegistry(), { mcp: { hosts: [] }, dialects: ['elasticsearch'] });
  await app.ready();
  let seen = 0;
  for (const { path, codeLines, inlineCode } of pages) {
    for (const line of [...codeLines, ...inlineCode]) {
      for (const [, method, route] of line.matchAll(/\b(GET|POST|HEAD) (\/[a-z0-9/_{}:.-]*)/g)) {
        assert.ok(
          app.hasRoute({ method: method as 'GET', url: route!.replace('{path}', '*').replace(/\{(\w+)\}/g, ':$1') }),
          `${path}: there is no route ${method} ${route}`,
        );
        seen++;
      }
    }
  }
  await app.close();
  assert.ok(seen > 3, `${seen} routes were found`);
});

test('every file and link that a page names exists', () => {
  let seen = 0;
  for (const { path, text, inlineCode } of pages) {
    for (const [, link] of text.matchAll(/\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)/g)) {
      assert.ok(
        existsSync(join(packageRoot, dirname(path), link!)),
        `${path}: the target of the link ${link} does not exist`,
      );
      seen++;
    }
    for (const code of inlineCode) {
      if (!/^(src|corpus|indexer|evaluation|records|cli|scripts|test|docs|models|bench|clients)\/[\w./-]*$/.test(code))
        continue;
      // Other model folders are examples of a user's folders.
      if (/^models\/(?!token-average-256|train|README)/.test(code)) continue;
      const candidates = [join(packageRoot, code), join(packageRoot, dirname(path), code)];
      assert.ok(
        candidates.some((candidate) => existsSync(candidate)),
        `${path}: there is no ${code}`,
      );
      seen++;
    }
  }
  assert.ok(seen > 20, `${seen} files and links were found`);
});

test('the meaning of every error code and the help of every option ends like a sentence', () => {
  for (const [code, meaning] of Object.entries(ERROR_CODES)) assert.match(meaning, /^[A-Z].*\.$/, code);
  for (const command of COMMANDS) {
    for (const [name, { help }] of Object.entries(command.options))
      assert.match(help, /[.):}]$/, `trawl ${command.name} --${name}`);
  }
});
