import type { ReadText } from '../../../src/base/system/control-group.ts';

/** Files of /proc and /sys with these contents, and no others. */
export function filesOf(contents: Readonly<Record<string, string>>): ReadText {
  return (path) => {
    const text = contents[path];
    if (text === undefined) throw new Error(`ENOENT: ${path}`);
    return text;
  };
}

/** /proc/self/mountinfo of a system with only version 2. */
export const MOUNTS_V2 = `22 28 0:21 / /proc rw,nosuid,nodev,noexec,relatime shared:13 - proc proc rw
30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
`;

/** /proc/self/mountinfo of a system with version 1 and a version 2 without controllers, as systemd mounts it. */
export const MOUNTS_V1 = `30 23 0:25 / /sys/fs/cgroup ro,nosuid,nodev,noexec shared:9 - tmpfs tmpfs ro,mode=755
31 30 0:26 / /sys/fs/cgroup/unified rw,nosuid,nodev,noexec,relatime shared:10 - cgroup2 cgroup2 rw,nsdelegate
35 30 0:30 / /sys/fs/cgroup/memory rw,nosuid,nodev,noexec,relatime shared:16 - cgroup cgroup rw,memory
40 30 0:35 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid,nodev,noexec,relatime shared:21 - cgroup cgroup rw,cpu,cpuacct
`;
