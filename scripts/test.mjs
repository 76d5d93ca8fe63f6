// `npm test`: set-up, lint, types, imports, unused code, and every test except the long ones and the comparisons with Python peers.
// `npm test -- corpus test/server/routes.test.ts` runs only the test files whose path contains a word, long ones too, and
// `npm test -- --name PATTERN` only the tests whose name fits a regular expression: both without lint and types.
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { importErrors } from './imports.mjs';
import { root, setup } from './setup.mjs';
import { outputOfFailure } from './steps.mjs';
import { filesWithName, runTests, testFiles } from './test-files.mjs';
import { typeErrors } from './typescript.mjs';

const {
  values: { name },
  positionals: words,
} = parseArgs({ options: { name: { type: 'string' } }, allowPositionals: true });
await setup();
const chosen = testFiles(words);
const whole = words.length === 0 && name === undefined;
const checks = whole ? Promise.all([lintErrors(), typeErrors(), unusedCode(), importErrors()]) : [];
await runTests(name === undefined ? chosen : filesWithName(chosen, name), { name });
const [lint, types, unused, imports] = await checks;
if (lint !== undefined) problem(`${lint}\nThe linter found problems. \`npm run lint\` fixes most of them.`);
if (types !== undefined) problem(`${types}\nThe types are wrong.`);
if (unused !== undefined) problem(`${unused}\nknip found code that nothing uses.`);
if (imports !== undefined) problem(`${imports}\nAn import is not allowed (.dependency-cruiser.cjs).`);
if (whole) process.stdout.write('Not run here: `npm run check` lists the longer checks.\n');

function lintErrors() {
  const biome = join(root, 'node_modules', '@biomejs', 'biome', 'bin', 'biome');
  return outputOfFailure(process.execPath, [biome, 'check', '--error-on-warnings', '.'], {
    cwd: root,
    env: process.env,
  });
}

/** What no file uses (knip.json), and what only tests use: an export for tests has the tag @internal. */
async function unusedCode() {
  const program = join(root, 'node_modules', 'knip', 'bin', 'knip.js');
  for (const options of [[], ['--production', '--exclude', 'types']]) {
    const output = await outputOfFailure(process.execPath, [program, ...options], { cwd: root, env: process.env });
    if (output !== undefined) return output;
  }
  return undefined;
}

function problem(text) {
  process.stderr.write(`${text}\n`);
  process.exitCode = 1;
}
