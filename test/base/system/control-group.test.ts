import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { type TestContext, test } from 'node:test';
import { availableCores } from '../../../src/base/system/cores.ts';
import { memoryLimit } from '../../../src/base/system/memory.ts';
import { cleanEnvironment, endOf, fileFolder, jsonOf, sampleIndex, TRAWL } from '../../cli/run-trawl.ts';
import { type GroupLimits, type LimitedGroup, limitedGroup } from '../../helpers/limited-group.ts';

interface DoctorFacts {
  readonly cores: number;
  readonly memoryBytes: number;
  readonly freeMemoryBytes: number;
  readonly search: { readonly engine: string; readonly threads?: number };
}

function groupFor(t: TestContext, limits: GroupLimits): LimitedGroup | undefined {
  const group = limitedGroup(limits);
  if ('missing' in group) {
    t.skip(group.missing);
    return undefined;
  }
  t.after(() => group.remove());
  return group;
}

async function doctorIn(group: LimitedGroup, namespace: boolean): Promise<DoctorFacts> {
  const child = group.spawn([...TRAWL, 'doctor', '--json'], { env: cleanEnvironment(), namespace });
  return jsonOf<DoctorFacts>(await endOf(child));
}

const QUOTAS: readonly (readonly [string, GroupLimits & { readonly cores: number }])[] = [
  ['a quota of one core', { cores: 1 }],
  ['a quota of one and a half cores, rounded up', { cores: 1.5 }],
  ['a quota set on the parent group', { cores: 1, onParent: true }],
];

for (const [name, limits] of QUOTAS) {
  // A namespace hides the groups around its root, and their quotas.
  for (const namespace of limits.onParent === true ? [false] : [false, true]) {
    test(`trawl takes no more cores than ${name}${namespace ? ', within a cgroup namespace' : ''}`, async (t) => {
      const group = groupFor(t, limits);
      if (group === undefined) return;
      const { cores, search } = await doctorIn(group, namespace);
      assert.equal(cores, Math.min(availableCores(), Math.ceil(limits.cores)));
      if (search.engine === 'native') assert.equal(search.threads, cores, 'threads of the search pool');
    });
  }
}

test('a server limited to one core has as many threads as one with --search-threads 1 and --encoder-threads 1', async (t) => {
  const group = groupFor(t, { cores: 1 });
  if (group === undefined) return;
  const index = await sampleIndex(await fileFolder());
  const threadsWith = async (...options: string[]): Promise<number> => {
    const args = ['serve', index, '--port', '0', '--json', '--quiet', ...options];
    const child = group.spawn([...TRAWL, ...args], { env: cleanEnvironment() });
    const ended = endOf(child);
    try {
      await new Promise((resolve) => child.stdout!.once('data', resolve));
      return readdirSync(`/proc/${child.pid}/task`).length;
    } finally {
      child.kill('SIGKILL');
      await ended;
    }
  };
  const byDefault = await threadsWith();
  assert.equal(byDefault, await threadsWith('--search-threads', '1', '--encoder-threads', '1'));
  assert.equal(byDefault + 2, await threadsWith('--search-threads', '3', '--encoder-threads', '1'));
});

test('memory is that of the control group if it is less than the machine’s', async (t) => {
  const limit = 700 * 1024 * 1024;
  if (memoryLimit() < limit) return t.skip(`the memory of this process is already limited to ${memoryLimit()} bytes`);
  const group = groupFor(t, { memoryBytes: limit });
  if (group === undefined) return;
  for (const namespace of [false, true]) {
    const { memoryBytes, freeMemoryBytes } = await doctorIn(group, namespace);
    assert.equal(memoryBytes, limit);
    assert.ok(freeMemoryBytes > 0 && freeMemoryBytes < limit, `${freeMemoryBytes} of ${limit} available`);
  }
});
