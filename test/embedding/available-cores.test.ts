import assert from 'node:assert/strict';
import { test } from 'node:test';
import { availableCores, cgroupQuotaCores } from '../../src/embedding/available-cores.ts';
import { memoryLimit } from '../../src/embedding/memory-limit.ts';

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

test('the tightest quota of the groups that a process lies in counts', () => {
  const nested = (own: string, outer: string) =>
    files({
      '/proc/self/cgroup': '0::/slurm/job_7\n',
      '/sys/fs/cgroup/slurm/job_7/cpu.max': own,
      '/sys/fs/cgroup/slurm/cpu.max': outer,
    });
  assert.equal(cgroupQuotaCores(nested('max 100000', '300000 100000')), 3);
  assert.equal(cgroupQuotaCores(nested('200000 100000', '300000 100000')), 2);
  assert.equal(cgroupQuotaCores(nested('max 100000', 'max 100000')), null);
  const first = files({
    '/proc/self/cgroup': '12:memory:/other\n4:cpu,cpuacct:/docker/x\n',
    '/sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us': '250000',
    '/sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us': '100000',
  });
  assert.equal(cgroupQuotaCores(first), 2.5);
});

test('memory is that of the machine, or what the control group allows', () => {
  const group = (limit: string) =>
    files({
      '/proc/self/cgroup': '0::/a/b\n',
      '/sys/fs/cgroup/a/memory.max': limit,
      '/sys/fs/cgroup/a/b/memory.max': 'max',
    });
  assert.equal(memoryLimit(group('500000000\n'), 1e9), 500_000_000);
  assert.equal(memoryLimit(group('max\n'), 1e9), 1e9);
  assert.equal(memoryLimit(group('5000000000\n'), 1e9), 1e9);
  const first = (limit: string) => files({ '/sys/fs/cgroup/memory/memory.limit_in_bytes': limit });
  assert.equal(memoryLimit(first('5000'), 1e9), 5000);
  assert.equal(memoryLimit(first('9223372036854771712'), 1e9), 1e9);
  assert.ok(memoryLimit() > 0);
});
