import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { loadCommand } from '../../cli/program/commands.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { PEERS } from '../helpers/peers.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

/** From the version in which every used field is stable (podFailurePolicy, backoffLimitPerIndex). */
const VERSIONS = ['1.33', '1.34', '1.35', '1.36', '1.37'];
const FOLDER = join(packageRoot, 'deploy', 'kubernetes');
// kustomization.yaml is for kubectl, not for the API.
const FILES = readdirSync(FOLDER).filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml');

interface Container {
  readonly name: string;
  readonly image: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly securityContext: { readonly readOnlyRootFilesystem: boolean; readonly allowPrivilegeEscalation: boolean };
  readonly resources: { readonly requests: object; readonly limits: object };
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string; readonly readOnly?: boolean }[];
  readonly [probe: `${string}Probe`]: { readonly httpGet: { readonly path: string; readonly port: string } };
}

interface PodSpec {
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly securityContext: { readonly runAsNonRoot: boolean };
  readonly volumes: readonly {
    readonly name: string;
    readonly persistentVolumeClaim?: { readonly claimName: string };
  }[];
}

interface Manifest {
  readonly path: string;
  readonly document: {
    readonly kind: string;
    readonly metadata: { readonly name: string };
    readonly spec: {
      readonly completions?: number;
      readonly template: { readonly metadata: { readonly labels: object }; readonly spec: PodSpec };
      readonly selector?: object;
    };
  };
  readonly problems: readonly string[];
}

function validate(files: readonly string[]): Promise<Manifest[]> {
  return PEERS.run('kubernetes_manifests.py', { files, versions: VERSIONS }) as Promise<Manifest[]>;
}

const manifests = PEERS.missing() === false ? await validate(FILES.map((name) => join(FOLDER, name))) : [];
const podSpecs = manifests.flatMap(({ document }) =>
  ['Job', 'Deployment'].includes(document.kind) ? [document.spec.template.spec] : [],
);
const containers = podSpecs.flatMap((spec) => [...(spec.initContainers ?? []), ...spec.containers]);

test('every manifest is valid for each version of the API', { skip: PEERS.missing() }, () => {
  assert.deepEqual(
    manifests.flatMap(({ path, document, problems }) => problems.map((problem) => [path, document.kind, problem])),
    [],
  );
  assert.deepEqual(manifests.map(({ document }) => document.kind).sort(), [
    'Deployment',
    'Deployment',
    'HorizontalPodAutoscaler',
    'Job',
    'Job',
    'Job',
    'PersistentVolumeClaim',
    'PodDisruptionBudget',
    'Service',
  ]);
});

test('a misspelled, wrongly typed or missing field is found', { skip: PEERS.missing() }, async (t) => {
  const folder = await tempFolder(t);
  const text = readFileSync(join(FOLDER, 'shards.yaml'), 'utf8');
  for (const [name, wrong] of [
    ['spelling', text.replace('parallelism: 7', 'paralelism: 7')],
    ['deep', text.replace('readOnlyRootFilesystem', 'readOnlyRootFileSystem')],
    ['type', text.replace('completions: 21', 'completions: "21"')],
    ['missing', text.replace('- name: trawl', '- title: trawl')],
  ] as const) {
    assert.notEqual(wrong, text, name);
    const path = join(folder, `${name}.yaml`);
    writeFileSync(path, wrong);
    const [found] = await validate([path]);
    assert.equal(found!.problems.length, VERSIONS.length, `${name}: ${found!.problems.join('; ')}`);
  }
});

test('every command of a container exists, with its options', { skip: PEERS.missing() }, async () => {
  let seen = 0;
  for (const { command = [], args = [], name } of containers) {
    const words = command.length === 0 ? ['trawl', ...args] : args.join(' ').split(/\s+/);
    const at = words.indexOf('trawl');
    const found = await loadCommand(words[at + 1] ?? '');
    assert.ok(at >= 0 && found !== undefined, `${name}: ${words.join(' ')}`);
    const known = found.options;
    for (const option of words.filter((word) => word.startsWith('--'))) {
      assert.ok(option.slice(2) in known, `trawl ${found.name} has no ${option}`);
    }
    seen++;
  }
  assert.equal(seen, 8);
});

test('the manifests agree with each other', { skip: PEERS.missing() }, () => {
  const byKind = (kind: string) => manifests.filter(({ document }) => document.kind === kind).map((m) => m.document);
  const shards = byKind('Job').find(({ metadata }) => metadata.name === 'trawl-shards')!;
  const stated = shards.spec.template.spec.containers[0]!.env!.find(({ name }) => name === 'SHARDS')!.value;
  assert.equal(stated, String(shards.spec.completions));
  const [claim] = byKind('PersistentVolumeClaim');
  for (const { volumes, initContainers = [] } of podSpecs) {
    const names = volumes.flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? []);
    // A Pod that copies the index keeps it on the disk of its node.
    const copies = initContainers.some(({ args }) => args?.[0] === 'sync');
    assert.deepEqual(names, copies ? [] : [claim!.metadata.name]);
  }
  const [deployment] = byKind('Deployment');
  const labels = deployment!.spec.template.metadata.labels;
  assert.deepEqual(byKind('Service')[0]!.spec.selector, labels);
  assert.equal(new Set(containers.map(({ image }) => image)).size, 1);
});

test('the autoscaler scales the server by a metric that the server has', { skip: PEERS.missing() }, () => {
  const text = readFileSync(join(FOLDER, 'autoscale.yaml'), 'utf8');
  const [, metric] = /metric: \{ name: (\w+) \}/.exec(text)!;
  assert.ok(readFileSync(join(packageRoot, 'docs', 'operations.md'), 'utf8').includes(`\`${metric}{`), metric);
  const scaled = manifests.find(({ document }) => document.kind === 'HorizontalPodAutoscaler')!.document as unknown as {
    spec: { scaleTargetRef: { name: string } };
  };
  const deployment = manifests.find(({ document }) => document.kind === 'Deployment')!.document;
  assert.equal(scaled.spec.scaleTargetRef.name, deployment.metadata.name);
});

test('containers run unprivileged with resource limits, and write only to the volume and /tmp', {
  skip: PEERS.missing(),
}, () => {
  for (const spec of podSpecs) assert.equal(spec.securityContext.runAsNonRoot, true);
  for (const { name, securityContext, resources, volumeMounts } of containers) {
    assert.deepEqual(
      [securityContext.readOnlyRootFilesystem, securityContext.allowPrivilegeEscalation],
      [true, false],
      name,
    );
    assert.ok('memory' in resources.limits && 'cpu' in resources.requests, name);
    assert.deepEqual(
      volumeMounts.map(({ mountPath }) => mountPath),
      ['/data', '/tmp'],
    );
  }
});

test('probes use routes that the server has, at the port it listens on', { skip: PEERS.missing() }, () => {
  const server = containers.find(({ args }) => args?.[0] === 'serve')!;
  const routes = readFileSync(join(packageRoot, 'docs', 'http-api.md'), 'utf8');
  const [port] = server.ports!;
  for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe'] as const) {
    const { path, port: name } = server[probe]!.httpGet;
    assert.ok(routes.includes(`\`GET ${path}\``), path);
    assert.equal(name, port!.name);
  }
  assert.equal(server.args![server.args!.indexOf('--port') + 1], String(port!.containerPort));
  assert.equal(server.volumeMounts.find(({ mountPath }) => mountPath === '/data')!.readOnly, true);
});
