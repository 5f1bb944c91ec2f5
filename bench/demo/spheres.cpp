// The demo: a small ray tracer with something to find in it. Highlights are computed by power(),
// which multiplies as often as the exponent says, one at a time. Of the scene's materials most have
// the exponent 2; who profiles the values that `exponent` takes sees it at once, and may write a
// fast case for it.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>

namespace {

struct Vector {
    double x, y, z;
    Vector operator+(Vector o) const { return {x + o.x, y + o.y, z + o.z}; }
    Vector operator-(Vector o) const { return {x - o.x, y - o.y, z - o.z}; }
    Vector operator*(double s) const { return {x * s, y * s, z * s}; }
};

double dot(Vector a, Vector b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}
Vector normalised(Vector v) {
    return v * (1 / std::sqrt(dot(v, v)));
}

struct Material {
    double brightness;
    int exponent;  // of the highlight
};

struct Sphere {
    Vector centre;
    double radius;
    const Material* material;
};

struct Ray {
    Vector origin, direction;
};

constexpr Material dull{0.6, 2}, shiny{0.9, 40};

// 24 spheres on a grid, one in twelve of them shiny.
std::array<Sphere, 24> make_scene() {
    std::array<Sphere, 24> scene{};
    for (int i = 0; i < 24; ++i)
        scene[static_cast<std::size_t>(i)] = {
            {(i % 6 - 2.5) * 1.1, (i / 6 - 1.5) * 1.1, 6.0 + i % 5},
            0.6,
            i % 12 == 7 ? &shiny : &dull};
    return scene;
}

// The distance at which the ray enters the sphere; infinity if it misses.
[[gnu::noinline]] double intersect(const Ray& ray, const Sphere& sphere) {
    const Vector to_centre = sphere.centre - ray.origin;
    const double along = dot(to_centre, ray.direction);
    if (along < 0) return std::numeric_limits<double>::infinity();
    const double miss_squared = dot(to_centre, to_centre) - along * along;
    const double radius_squared = sphere.radius * sphere.radius;
    if (miss_squared > radius_squared) return std::numeric_limits<double>::infinity();
    return along - std::sqrt(radius_squared - miss_squared);
}

[[gnu::noinline]] double power(double base, int exponent) {
    double result = 1;
    for (int i = 0; i < exponent; ++i) result *= base;
    return result;
}

[[gnu::noinline]] double shade(const Ray& ray, const Sphere& sphere, double distance) {
    static const Vector light = normalised({-1, 2, -3});
    const Vector normal =
        (ray.origin + ray.direction * distance - sphere.centre) * (1 / sphere.radius);
    const Vector mirrored = ray.direction - normal * (2 * dot(ray.direction, normal));
    const double diffuse = std::max(0.0, dot(normal, light));
    const double highlight = power(std::max(0.0, dot(mirrored, light)), sphere.material->exponent);
    return sphere.material->brightness * diffuse + highlight;
}

[[gnu::noinline]] double trace(const Ray& ray, const std::array<Sphere, 24>& scene) {
    const Sphere* nearest = nullptr;
    double distance = std::numeric_limits<double>::infinity();
    for (const Sphere& sphere : scene) {
        const double there = intersect(ray, sphere);
        if (there < distance) {
            distance = there;
            nearest = &sphere;
        }
    }
    return nearest ? shade(ray, *nearest, distance) : 0.05;
}

[[gnu::noinline]] double render(int frame, const std::array<Sphere, 24>& scene) {
    constexpr int width = 320, height = 240;
    double light = 0;
    for (int row = 0; row < height; ++row)
        for (int column = 0; column < width; ++column) {
            const double x = (column - width / 2) / 200.0, y = (height / 2 - row) / 200.0;
            light += trace({{frame * 0.01, 0, 0}, normalised({x, y, 1})}, scene);
        }
    return light / (width * height);
}

}  // namespace

int main(int argc, char** argv) {
    const int frames = argc > 1 ? std::atoi(argv[1]) : 600;
    const auto scene = make_scene();
    double light = 0;
    for (int frame = 0; frame < frames; ++frame) light += render(frame, scene);
    std::printf("%d frames, mean light %.6f\n", frames, light / frames);
    return 0;
}
