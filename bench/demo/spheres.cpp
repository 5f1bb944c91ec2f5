// The demo: a small ray tracer with something to find in it. The highlights of 30 lamps are
// computed by power(), which multiplies `exponent` times. Five of six spheres have the exponent 2,
// which a profile of its values shows at once. A fast case for 2 would pay.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>

struct Vector {
    double x, y, z;
    Vector operator+(Vector o) const { return {x + o.x, y + o.y, z + o.z}; }
    Vector operator-(Vector o) const { return {x - o.x, y - o.y, z - o.z}; }
    Vector operator*(double s) const { return {x * s, y * s, z * s}; }
};

static double dot(Vector a, Vector b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}
static Vector normalised(Vector v) {
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

static const std::array<Vector, 30> lamps = [] {
    std::array<Vector, 30> directions{};
    for (std::size_t i = 0; i < directions.size(); ++i)
        directions[i] = normalised({static_cast<double>(i) - 15, 9, -12});
    return directions;
}();

struct Ray {
    Vector origin, direction;
};

constexpr Material dull{0.6, 2}, shiny{0.9, 40};

using Scene = std::array<Sphere, 6>;

// A grid of spheres, one of which is shiny.
static Scene make_scene() {
    Scene scene{};
    for (int i = 0; i < 6; ++i)
        scene[static_cast<std::size_t>(i)] = {
            {(i % 3 - 1) * 2.2, (i / 3 - 0.5) * 2.2, 5.0 + i % 2}, 1.2, i == 4 ? &shiny : &dull};
    return scene;
}

// The distance at which the ray enters the sphere; infinity if it misses.
[[gnu::noinline]] static double intersect(const Ray& ray, const Sphere& sphere) {
    const Vector to_centre = sphere.centre - ray.origin;
    const double along = dot(to_centre, ray.direction);
    if (along < 0) return std::numeric_limits<double>::infinity();
    const double miss_squared = dot(to_centre, to_centre) - along * along;
    const double radius_squared = sphere.radius * sphere.radius;
    if (miss_squared > radius_squared) return std::numeric_limits<double>::infinity();
    return along - std::sqrt(radius_squared - miss_squared);
}

[[gnu::noinline]] static double power(double base, int exponent) {
    double result = 1;
    for (int i = 0; i < exponent; ++i) result *= base;
    return result;
}

[[gnu::noinline]] static double shade(const Ray& ray, const Sphere& sphere, double distance) {
    const Vector normal =
        (ray.origin + ray.direction * distance - sphere.centre) * (1 / sphere.radius);
    const Vector mirrored = ray.direction - normal * (2 * dot(ray.direction, normal));
    double light = 0;
    for (const Vector& lamp : lamps) {
        light += sphere.material->brightness * std::max(0.0, dot(normal, lamp));
        light += power(std::max(0.0, dot(mirrored, lamp)), sphere.material->exponent);
    }
    return light / lamps.size();
}

[[gnu::noinline]] static double trace(const Ray& ray, const Scene& scene) {
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

[[gnu::noinline]] static double render(int frame, const Scene& scene) {
    constexpr int width = 240, height = 180;
    double light = 0;
    for (int row = 0; row < height; ++row)
        for (int column = 0; column < width; ++column) {
            const double x = (column - width / 2) / 150.0, y = (height / 2 - row) / 150.0;
            light += trace({{frame * 0.01, 0, 0}, normalised({x, y, 1})}, scene);
        }
    return light / (width * height);
}

int main(int argc, char** argv) {
    const int frames = argc > 1 ? std::atoi(argv[1]) : 600;
    const auto scene = make_scene();
    double light = 0;
    for (int frame = 0; frame < frames; ++frame) light += render(frame, scene);
    std::printf("%d frames, mean light %.6f\n", frames, light / frames);
    return 0;
}
