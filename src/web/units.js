/** A number of bytes for people. */
export function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = value >= 1 ? Math.min(units.length - 1, Math.floor(Math.log2(value) / 10)) : 0;
  return `${Number((value / 1024 ** power).toPrecision(3))} ${units[power]}`;
}
