import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import { loadCommand } from '../../cli/program/commands.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { SCHEMAS } from '../helpers/peers.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const skip = SCHEMAS.missing();
const COMPOSE = join(packageRoot, 'deploy', 'compose.yaml');
const GITHUB = join(packageRoot, '.github');

/** The files that other programs read, by the schema that check-jsonschema has of them. */
const FILES = {
  'compose-spec': [COMPOSE],
  'github-workflows': readdirSync(join(GITHUB, 'workflows')).map((name) => join(GITHUB, 'workflows', name)),
  'github-issue-forms': ['bug.yml', 'client.yml'].map((name) => join(GITHUB, 'ISSUE_TEMPLATE', name)),
  'github-issue-config': [join(GITHUB, 'ISSUE_TEMPLATE', 'config.yml')],
} as const;
type Schema = keyof typeof FILES;

/** What is wrong with the files; asks no other server for the schema. */
function problems(schema: Schema, files: readonly string[]): Promise<string[]> {
  const args = ['--builtin-schema', `vendor.${schema}`, '--output-format', 'json', ...files];
  return new Promise((resolve, reject) => {
    execFile(join(SCHEMAS.folder, 'bin', 'check-jsonschema'), args, (error, stdout, stderr) => {
      if (error !== null && error.code !== 1) return reject(new Error(`${stdout}${stderr}`));
      const { errors = [], parse_errors: unread = [] } = JSON.parse(stdout) as {
        errors?: { filename: string; path: string; message: string }[];
        parse_errors?: { filename: string; message: string }[];
      };
      const found = [...errors, ...unread.map((each) => ({ path: '', ...each }))];
      resolve(found.map(({ filename, path, message }) => `${basename(filename)} ${path}: ${message}`));
    });
  });
}

for (const schema of Object.keys(FILES) as Schema[]) {
  test(`files that are read as ${schema} have its form`, { skip }, async () => {
    assert.deepEqual(await problems(schema, FILES[schema]), []);
  });
}

test('every file for GitHub is checked', () => {
  const checked = Object.values(FILES).flat();
  const found = ['workflows', 'ISSUE_TEMPLATE'].flatMap((folder) =>
    readdirSync(join(GITHUB, folder)).map((name) => join(GITHUB, folder, name)),
  );
  assert.deepEqual(
    found.filter((file) => !checked.includes(file)),
    [],
  );
});

test('a misspelled or missing field is found', { skip }, async (t) => {
  const folder = await tempFolder(t);
  for (const [schema, from, to] of [
    ['compose-spec', 'read_only: true', 'readonly: true'],
    ['compose-spec', 'ports: ["127.0.0.1:8000:8000"]', 'ports: 8000'],
    ['github-workflows', 'runs-on: ubuntu-24.04', 'run-on: ubuntu-24.04'],
    ['github-issue-forms', 'label: trawl doctor', 'title: trawl doctor'],
    ['github-issue-config', 'blank_issues_enabled: true', 'blank_issues_enabled: maybe'],
  ] as const) {
    const text = readFileSync(FILES[schema][0]!, 'utf8');
    const wrong = text.replace(from, to);
    assert.notEqual(wrong, text, from);
    const path = join(folder, 'wrong.yaml');
    writeFileSync(path, wrong);
    assert.notDeepEqual(await problems(schema, [path]), [], to);
  }
});

test('the server of the compose file is for this machine alone, writes only to /tmp, and has a command that exists', {
  skip,
}, async () => {
  const { yaml } = (await SCHEMAS.run('schemas_check.py', { yaml: [COMPOSE], boms: [] })) as {
    yaml: [{ services: { trawl: Service } }];
  };
  const { trawl } = yaml[0].services;
  const [name, ...args] = trawl.command;
  const command = (await loadCommand(name!)) ?? assert.fail(`there is no trawl ${name}`);
  const known = command.options;
  for (const option of args.filter((word) => word.startsWith('--'))) assert.ok(option.slice(2) in known, option);
  const port = args[args.indexOf('--port') + 1];
  assert.deepEqual(trawl.ports, [`127.0.0.1:${port}:${port}`]);
  assert.ok(trawl.volumes.length > 0 && trawl.volumes.every((volume) => volume.endsWith(':ro')));
  assert.deepEqual([trawl.read_only, trawl.tmpfs, trawl.cap_drop], [true, ['/tmp'], ['ALL']]);
  const health = readFileSync(join(packageRoot, trawl.build.dockerfile), 'utf8');
  assert.match(health, new RegExp(`^HEALTHCHECK[^]*?127\\.0\\.0\\.1:${port}/readyz`, 'm'), 'of the image');
});

interface Service {
  readonly command: readonly string[];
  readonly ports: readonly string[];
  readonly volumes: readonly string[];
  readonly read_only: boolean;
  readonly tmpfs: readonly string[];
  readonly cap_drop: readonly string[];
  readonly build: { readonly dockerfile: string };
}

test('the list of parts that npm run sbom writes has the form of CycloneDX, and a wrong one is found', {
  skip,
}, async (t) => {
  const folder = await tempFolder(t);
  const script = join(packageRoot, 'scripts', 'sbom.mjs');
  const { status, stderr } = spawnSync(process.execPath, [script, '--out', folder], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  const file = join(folder, readdirSync(folder)[0]!);
  const wrong = join(folder, 'wrong.cdx.json');
  writeFileSync(wrong, readFileSync(file, 'utf8').replaceAll('"version"', '"release"'));
  const { boms } = (await SCHEMAS.run('schemas_check.py', { yaml: [], boms: [file, wrong] })) as { boms: unknown[] };
  assert.equal(boms[0], null);
  assert.equal(typeof boms[1], 'string');
});
