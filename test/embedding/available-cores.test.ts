import assert from 'node:assert/strict';
import { test } from 'node:test';
import { availableCores, cgroupQuotaCores } from '../../src/embedding/available-cores.ts';

function files(contents: Record<string, string>) {
  return (path: string) => {
    const text = contents[path];
    if (text === undefined) throw new Error('ENOENT');
    return text;
  };
}

test('the quota of either version of control groups is read in cores', () => {
  assert.equal(cgroupQuotaCores(files({ '/sys/fs/cgroup/cpu.max': '150000 100000\n' })), 1.5);
  assert.equal(cgroupQuotaCores(files({ '/sys/fs/cgroup/cpu.max': 'max 100000\n' })), null);
  const v1 = (quota: string) => ({
    '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': quota,
    '/sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000\n',
  });
  assert.equal(cgroupQuotaCores(files(v1('400000\n'))), 4);
  assert.equal(cgroupQuotaCores(files(v1('-1\n'))), null);
  assert.equal(cgroupQuotaCores(files({})), null);
});

test('there is at least one core', () => {
  assert.ok(Number.isInteger(availableCores()) && availableCores() >= 1);
});
