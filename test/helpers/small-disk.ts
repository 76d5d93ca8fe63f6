import { spawnSync } from 'node:child_process';

/** Mounts a small tmpfs at a folder, or returns why that is impossible. Needs root. */
export function smallDisk(folder: string, kilobytes: number): { unmount(): void } | { readonly missing: string } {
  const options = ['-t', 'tmpfs', '-o', `size=${kilobytes}k`, 'tmpfs', folder];
  const mounted = spawnSync('mount', options, { encoding: 'utf8' });
  if (mounted.status !== 0) {
    return { missing: `no tmpfs can be mounted here (${mounted.error?.message ?? mounted.stderr.trim()})` };
  }
  return { unmount: () => spawnSync('umount', ['-l', folder]) };
}
