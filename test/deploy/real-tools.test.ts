import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { packageRoot } from '../../src/base/package-root.ts';

const DEPLOY = join(packageRoot, 'deploy');

function isInstalled(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
}

/** kubectl has kustomize in it. */
const KUSTOMIZE = [
  ['kustomize', 'build'],
  ['kubectl', 'kustomize'],
].find(([program]) => isInstalled(program!));

function output(command: string, args: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  return stdout;
}

test('kustomize builds the server with its autoscaler and budget, and without a number of servers', {
  skip: KUSTOMIZE === undefined && 'neither kustomize nor kubectl is installed (Debian 13: apt-get install kustomize)',
}, () => {
  const [program, ...args] = KUSTOMIZE!;
  const built = output(program!, [...args, join(DEPLOY, 'kubernetes')]);
  const kinds = [...built.matchAll(/^kind: (\w+)$/gm)].map(([, kind]) => kind);
  assert.deepEqual(kinds.sort(), ['Deployment', 'HorizontalPodAutoscaler', 'PodDisruptionBudget', 'Service']);
  assert.doesNotMatch(built, /^ {2}replicas:/m);
});

test('Docker Compose accepts the compose file, which binds the loopback address and writes nowhere but to /tmp', {
  skip: !isInstalled('docker-compose') && 'docker-compose is not installed (Debian 13: apt-get install docker-compose)',
}, () => {
  const file = join(DEPLOY, 'compose.yaml');
  const { services } = JSON.parse(output('docker-compose', ['-f', file, 'config', '--format', 'json'])) as {
    services: {
      trawl: {
        ports: { host_ip: string }[];
        volumes: { target: string; read_only?: boolean }[];
        read_only: boolean;
        tmpfs: string[];
        build: { dockerfile: string };
      };
    };
  };
  const { trawl } = services;
  assert.deepEqual(
    trawl.ports.map((port) => port.host_ip),
    ['127.0.0.1'],
  );
  assert.deepEqual([trawl.read_only, trawl.tmpfs, trawl.build.dockerfile], [true, ['/tmp'], 'deploy/Dockerfile']);
  assert.ok(trawl.volumes.length === 2 && trawl.volumes.every((volume) => volume.read_only === true));
});
