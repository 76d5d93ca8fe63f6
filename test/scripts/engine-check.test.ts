import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { packageRoot } from '../../src/base/package-root.ts';

test('the check of an installed engine finds both engines in the package, and the same hits with both', () => {
  const script = join(packageRoot, 'scripts', 'checks', 'install', 'engine-check.mjs');
  const { stdout, stderr } = spawnSync(process.execPath, [script, packageRoot], { encoding: 'utf8' });
  assert.equal(stderr, '');
  assert.equal((JSON.parse(stdout) as { equal: boolean }).equal, true);
});
