// The versions of Node.js that Trawl supports. cli/trawl.ts loads this file too.

/** The same as `engines` in package.json. 22.15 is the first version with zstd in node:zlib; 23 is no longer maintained. */
export const NEEDED = '^22.15 || >=24';

/** @param version such as `24.1.0`, as in process.versions.node. */
export function isSupported(version) {
  const [major, minor] = version.split('.').map(Number);
  return major >= 24 || (major === 22 && minor >= 15);
}
