import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { packageRoot } from '../../src/base/package-root.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

async function checker(t: TestContext) {
  const root = await tempFolder(t);
  mkdirSync(join(root, 'scripts'));
  for (const name of ['release-check.mjs', 'steps.mjs'])
    cpSync(join(packageRoot, 'scripts', name), join(root, 'scripts', name));
  return (facts: object, args: readonly string[], repository?: string) => {
    writeFileSync(join(root, 'package.json'), JSON.stringify(facts));
    const { GITHUB_REPOSITORY: _inherited, ...env } = process.env;
    const { status, stderr } = spawnSync(process.execPath, [join(root, 'scripts', 'release-check.mjs'), ...args], {
      encoding: 'utf8',
      env: repository === undefined ? env : { ...env, GITHUB_REPOSITORY: repository },
    });
    return { status, stderr };
  };
}

const url = 'git+https://github.com/someone/trawl.git';

test('a release needs the tag of its version, and the repository that has the tag', async (t) => {
  const check = await checker(t);
  const facts = { version: '1.2.0', repository: { type: 'git', url } };
  assert.deepEqual(check(facts, ['v1.2.0'], 'someone/trawl'), { status: 0, stderr: '' });
  assert.equal(check({ ...facts, repository: 'github:Someone/Trawl' }, ['v1.2.0'], 'someone/trawl').status, 0);
  assert.equal(check(facts, ['v1.2.0']).status, 0);
  const refused = (found: ReturnType<typeof check>, message: RegExp): void => {
    assert.equal(found.status, 1);
    assert.match(found.stderr, message);
  };
  refused(check(facts, ['v1.2.1'], 'someone/trawl'), /The tag is v1\.2\.1, but package\.json has version 1\.2\.0/);
  refused(check(facts, ['1.2.0'], 'someone/trawl'), /expected the tag v1\.2\.0/);
  refused(check(facts, ['v1.2.0'], 'other/trawl'), /expected github\.com\/other\/trawl/);
  refused(check(facts, ['v1.2.0'], 'someone/trawl-fork'), /expected github\.com\/someone\/trawl-fork/);
  refused(check(facts, ['v1.2.0'], 'someone/tra.l'), /expected github\.com\/someone\/tra\.l/);
  refused(check({ version: '1.2.0' }, ['v1.2.0']), /has no repository, which npm publish --provenance needs/);
  refused(check(facts, []), /Usage: /);
});

const workflow = readFileSync(join(packageRoot, '.github', 'workflows', 'release.yml'), 'utf8');

test('the workflow checks the tag before it builds, and publishes a file, not a name of a repository', () => {
  assert.match(workflow, /run: node scripts\/release-check\.mjs "\$GITHUB_REF_NAME"\n {6}- run: npm run build\n/);
  const published = [...workflow.matchAll(/npm publish (\S+)/g)].map(([, file]) => file!);
  assert.deepEqual(published, ['./package/trawl-retrieval-*.tgz']);
});

test('the release has the packages and the list of their parts, and only its last job may write to the repository', () => {
  assert.match(workflow, /run: npm run sbom -- --out package\n {6}- uses: actions\/upload-artifact@v4\n/);
  assert.match(workflow, /run: gh release create "\$GITHUB_REF_NAME" .*--verify-tag .* package\/\* wheels\/\*$/m);
  const jobs = workflow.split(/^ {2}(?=[\w-]+:$)/m).slice(1);
  const writing = jobs.filter((job) => job.includes('contents: write'));
  assert.deepEqual(writing, [jobs.at(-1)]);
  assert.match(writing[0]!, /^files:\n {4}needs: publish\n/);
});
