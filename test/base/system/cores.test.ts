import assert from 'node:assert/strict';
import { availableParallelism } from 'node:os';
import { test } from 'node:test';
import { availableCores } from '../../../src/base/system/cores.ts';
import { filesOf, MOUNTS_V1, MOUNTS_V2 } from './proc-files.ts';

const machine = (allowed: string, online: string) => ({
  '/proc/self/status': `Name:\tnode\nCpus_allowed:\tff\nCpus_allowed_list:\t${allowed}\n`,
  '/sys/devices/system/cpu/online': `${online}\n`,
});

/** A machine of 128 cores, all allowed. */
const MACHINE = machine('0-127', '0-127');

const inV2 = (files: Record<string, string>, group = '/') =>
  filesOf({ ...MACHINE, '/proc/self/cgroup': `0::${group}\n`, '/proc/self/mountinfo': MOUNTS_V2, ...files });

const inV1 = (files: Record<string, string>, group = '/') =>
  filesOf({
    ...MACHINE,
    '/proc/self/cgroup': `12:memory:/other\n4:cpu,cpuacct:${group}\n0::/\n`,
    '/proc/self/mountinfo': MOUNTS_V1,
    ...files,
  });

test('the quota of version 2 is read in cores', () => {
  assert.equal(availableCores(inV2({ '/sys/fs/cgroup/cpu.max': '150000 100000\n' })), 2, 'rounded up');
  assert.equal(availableCores(inV2({ '/sys/fs/cgroup/cpu.max': 'max 100000\n' })), 128);
});

test('the quota of version 1 is read in cores', () => {
  const quota = (us: string) => ({
    '/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us': us,
    '/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us': '100000\n',
  });
  assert.equal(availableCores(inV1(quota('400000\n'))), 4);
  assert.equal(availableCores(inV1(quota('-1\n'))), 128);
});

test('a system without control groups has no quota', () => {
  assert.equal(availableCores(filesOf(MACHINE)), 128);
  assert.equal(availableCores(filesOf({})), availableParallelism(), 'nor /proc');
});

test('the lowest quota of the groups that contain a process counts', () => {
  const nested = (own: string, outer: string) =>
    inV2({ '/sys/fs/cgroup/slurm/job_7/cpu.max': own, '/sys/fs/cgroup/slurm/cpu.max': outer }, '/slurm/job_7');
  assert.equal(availableCores(nested('max 100000', '300000 100000')), 3);
  assert.equal(availableCores(nested('200000 100000', '300000 100000')), 2);
  assert.equal(availableCores(nested('max 100000', 'max 100000')), 128);
});

test('a container of version 1 sees its group at the mount point, below which its own groups lie', () => {
  const mount = '40 30 0:27 /docker/x /sys/fs/cgroup/cpu,cpuacct ro,nosuid master:11 - cgroup cgroup rw,cpu,cpuacct';
  const container = (group: string) =>
    inV1(
      {
        '/proc/self/mountinfo': mount,
        '/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us': '250000',
        '/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us': '100000',
        '/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us': '50000',
        '/sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us': '100000',
      },
      group,
    );
  assert.equal(availableCores(container('/docker/x')), 3);
  assert.equal(availableCores(container('/docker/x/job')), 1);
});

test('a hierarchy is found where it is mounted, whatever the path', () => {
  const files = { '/proc/self/mountinfo': '41 31 0:38 / /mnt/all\\040groups rw,relatime - cgroup2 cgroup2 rw' };
  assert.equal(availableCores(inV2({ ...files, '/mnt/all groups/a/cpu.max': '700000 100000' }, '/a')), 7);
});

test('available cores are the online ones that the affinity allows, or a lower quota rounded up', () => {
  const cores = (allowed: string, online: string, quota: string) =>
    availableCores(inV2({ ...machine(allowed, online), '/sys/fs/cgroup/cpu.max': quota }));
  assert.equal(cores('0-127', '0-127', '800000 100000'), 8);
  assert.equal(cores('0-127', '0-127', '150000 100000'), 2);
  assert.equal(cores('0-127', '0-127', '20000 100000'), 1);
  assert.equal(cores('0-3,8,10-11', '0-127', 'max 100000'), 7);
  assert.equal(cores('0-239', '0-1', 'max 100000'), 2, 'the affinity names cores that could be plugged in');
  assert.equal(cores('0-1', '0-127', '800000 100000'), 2);
});
