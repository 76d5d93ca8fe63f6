/** Whether a path is one of `places` or begins with one that ends with a slash. '' is every path. */
export function within(path: string, places: readonly string[]): boolean {
  return places.some((place) => (place.endsWith('/') || place === '' ? path.startsWith(place) : path === place));
}
