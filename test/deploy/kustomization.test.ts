import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { packageRoot } from '../../src/base/package-root.ts';

const FOLDER = join(packageRoot, 'deploy', 'kubernetes');
const KUSTOMIZATION = readFileSync(join(FOLDER, 'kustomization.yaml'), 'utf8');

test('the kustomization has the server and the autoscaler, and not the volume, which would be deleted with them', () => {
  const named = [...KUSTOMIZATION.matchAll(/^ {2}- (\S+\.yaml)$/gm)].map(([, name]) => name!);
  assert.deepEqual(named, ['serve.yaml', 'autoscale.yaml']);
  for (const name of named) {
    const path = join(FOLDER, name);
    assert.ok(existsSync(path), name);
    assert.doesNotMatch(readFileSync(path, 'utf8'), /^kind: PersistentVolumeClaim$/m);
  }
});

test('the kustomization removes the number of servers, which the autoscaler decides', () => {
  const [, kind, name] = /^ {2}- target: \{ group: apps, version: v1, kind: (\w+), name: (\w+) \}$/m.exec(
    KUSTOMIZATION,
  )!;
  assert.match(KUSTOMIZATION, /^ {6}- op: remove\n {8}path: \/spec\/replicas$/m);
  const server = readFileSync(join(FOLDER, 'serve.yaml'), 'utf8');
  const scaled = new RegExp(
    `^kind: ${kind}\nmetadata:\n {2}name: ${name}\n[\\s\\S]*?^spec:\n(?: {2}#.*\n)* {2}replicas: 2$`,
    'm',
  );
  assert.match(server, scaled, 'there is something to remove: otherwise kubectl refuses the patch');
  const autoscaler = readFileSync(join(FOLDER, 'autoscale.yaml'), 'utf8');
  assert.match(autoscaler, new RegExp(`scaleTargetRef: \\{ apiVersion: apps/v1, kind: ${kind}, name: ${name} \\}`));
});
