import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { packageRoot } from '../src/base/package-root.ts';

function git(...args: readonly string[]): string[] {
  return execFileSync('git', args, { cwd: packageRoot, encoding: 'utf8' }).split('\n').filter(Boolean);
}

const skip = existsSync(join(packageRoot, '.git')) ? false : 'the package is not a git checkout';

test('no tracked file matches .gitignore: git and the linter would not see new files beside it', {
  skip,
}, () => {
  assert.deepEqual(git('ls-files', '--cached', '--ignored', '--exclude-standard'), []);
  assert.ok(git('ls-files').length > 500);
});

test('no source folder has a name that other tools ignore by default', { skip }, () => {
  const ignored = /(^|\/)(build|dist|out|target|lib|bin|tmp|coverage)\//;
  assert.deepEqual(
    git('ls-files', '*.ts', '*.cpp', '*.hpp').filter((file) => ignored.test(file)),
    [],
  );
});
