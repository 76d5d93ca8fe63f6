import assert from 'node:assert/strict';
import { test } from 'node:test';
import { availableMemory, memoryLimit } from '../../../src/base/system/memory.ts';
import { filesOf, MOUNTS_V1, MOUNTS_V2 } from './proc-files.ts';

const MACHINE = 1e9;

const inV2 = (files: Record<string, string>) =>
  filesOf({ '/proc/self/cgroup': '0::/a/b\n', '/proc/self/mountinfo': MOUNTS_V2, ...files });

const inV1 = (files: Record<string, string>) =>
  filesOf({ '/proc/self/cgroup': '4:memory:/\n0::/\n', '/proc/self/mountinfo': MOUNTS_V1, ...files });

test('the memory limit is the machine’s memory, or that of a control group if it is less', () => {
  const limit = (bytes: string) =>
    memoryLimit(inV2({ '/sys/fs/cgroup/a/memory.max': bytes, '/sys/fs/cgroup/a/b/memory.max': 'max' }), MACHINE);
  assert.equal(limit('500000000\n'), 500_000_000);
  assert.equal(limit('max\n'), MACHINE);
  assert.equal(limit('5000000000\n'), MACHINE);
  assert.ok(memoryLimit() > 0);
});

test('the memory limit of version 1 counts too, and its number for “no limit” does not', () => {
  const limit = (bytes: string) => memoryLimit(inV1({ '/sys/fs/cgroup/memory/memory.limit_in_bytes': bytes }), MACHINE);
  assert.equal(limit('5000'), 5000);
  assert.equal(limit('9223372036854771712'), MACHINE);
});

test('available memory is what the control group has left, page cache included', () => {
  const v2 = inV2({
    '/sys/fs/cgroup/a/memory.max': '600',
    '/sys/fs/cgroup/a/memory.current': '500',
    '/sys/fs/cgroup/a/memory.stat': 'anon 200\nfile 300\ninactive_anon 1\nactive_file 100\ninactive_file 150\n',
  });
  assert.equal(availableMemory(v2, MACHINE), 600 - (500 - 250));
  assert.equal(availableMemory(v2, 40), 40, 'the machine has less');
  const v1 = inV1({
    '/sys/fs/cgroup/memory/memory.limit_in_bytes': '600',
    '/sys/fs/cgroup/memory/memory.usage_in_bytes': '500',
    '/sys/fs/cgroup/memory/memory.stat': 'active_file 7\ntotal_inactive_file 150\ntotal_active_file 100\n',
  });
  assert.equal(availableMemory(v1, MACHINE), 350);
  const over = inV2({ '/sys/fs/cgroup/a/memory.max': '600', '/sys/fs/cgroup/a/memory.current': '601' });
  assert.equal(availableMemory(over, MACHINE), 0);
});
